/** Batch scripts for Slurm, as they are, on a real server and a worker that says it has GPUs. */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DROVER, ROOT, startJourney, type, until, type Journey } from '../support/journey.ts';

let journey: Journey;
let folder: string;
/** Where tasks have their temporary files. */
let scratch: string;
const tools = (): string => path.join(journey.home, 'tools');

/** What a site has and this machine has not. */
const TORCHRUN = `#!/usr/bin/env python3
import os, socket, sys, time
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
host, port = options["--rdzv_endpoint"].split(":")
node, nodes = int(os.environ["SLURM_NODEID"]), int(options["--nnodes"])
if node == 0:
    with socket.create_server(("", int(port))) as server:
        server.settimeout(30)
        met = sorted(int(server.accept()[0].makefile().readline()) for _ in range(nodes - 1))
    print("node 0 met", met, "for", options["--nproc_per_node"], "GPUs", flush=True)
else:
    for _ in range(300):
        try:
            connection = socket.create_connection((host, int(port)), timeout=30)
            break
        except OSError:
            time.sleep(0.1)
    connection.sendall(f"{node}\\n".encode())
    print("node", node, "sees", os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
`;
const CONDA = 'conda() { export CONDA_DEFAULT_ENV=$2; }\n';

beforeAll(async () => {
  scratch = mkdtempSync(path.join(tmpdir(), 'drover-sbatch-scratch-'));
  // Room for all at once: none has to wait for another, or to give way.
  const args = ['--resources', 'cpus=32,mem=8Gi,gpus=8:A100'];
  journey = await startJourney({ args, env: { TMPDIR: scratch } });
  folder = path.join(journey.home, 'sbatch');
  cpSync(path.join(ROOT, 'examples/sbatch'), folder, { recursive: true });
  mkdirSync(tools());
  symlinkSync(DROVER, path.join(tools(), 'drover'));
  writeFileSync(path.join(tools(), 'torchrun'), TORCHRUN);
  chmodSync(path.join(tools(), 'torchrun'), 0o755);
  const conda = path.join(journey.home, 'miniconda3/etc/profile.d');
  mkdirSync(conda, { recursive: true });
  writeFileSync(path.join(conda, 'conda.sh'), CONDA);
  await until('the worker is there', async () =>
    (await journey.client.listWorkers({})).items.some(({ state }) => state === 'ONLINE'),
  );
});
afterAll(async () => {
  await journey.close();
  rmSync(scratch, { recursive: true });
});

const sbatch = (...args: string[]) => journey.start(['sbatch', ...args], { cwd: folder }).ended;

/** Submits, waits, and says what it printed. */
async function runScript(...args: string[]) {
  const { code, stdout, stderr } = await sbatch('--parsable', ...args);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^j\w+\n$/)]);
  const id = stdout.trim();
  const job = await journey.ended(id);
  const log = await journey.drover('logs', id);
  // Lines of arrays and gangs come behind their index.
  const out = log.stdout.replaceAll(/^\[\d+\] /gm, '');
  return { id, job, told: stderr, out, err: log.stderr };
}

const file = (name: string): string => readFileSync(path.join(folder, name), 'utf8');

describe.concurrent('scripts', () => {
  test('single-gpu.sh: its GPU, its file beside the log, and what was not mapped', async () => {
    const { job, told, out } = await runScript('single-gpu.sh');
    expect(job).toMatchObject({ state: 'SUCCEEDED', name: 'resnet' });
    const number = /^job (\d+) on \S+ with GPU [0-7]$/m.exec(out)?.[1];
    expect(out).toContain('epoch 3 of 3: rate 0.1\ndone with 2 workers\n');
    expect(file(`logs/resnet-${number}.out`)).toBe(out);
    expect(told.match(/not mapped: (\S+)/g)).toEqual([
      'not mapped: --partition=gpu',
      'not mapped: --mail-type=END,FAIL',
      'not mapped: --mail-user=ada@example.org',
    ]);
  });

  test('sweep.sh: indices that are not 0..N-1, files in folders that did not exist', async () => {
    const { job } = await runScript('sweep.sh');
    expect(job).toMatchObject({ state: 'SUCCEEDED', tasks: { total: 3, succeeded: 3 } });
    const names = readdirSync(path.join(folder, 'logs/sweep')).toSorted();
    expect(names.map((name) => name.replace(/^\d+/, 'A'))).toEqual(
      ['1', '5', '9'].flatMap((index) => [`A_${index}.err`, `A_${index}.out`]),
    );
    expect(new Set(names.map((name) => name.split('_')[0])).size).toBe(1);
    const [errors, out] = names.slice(-2).map((name) => file(`logs/sweep/${name}`));
    expect(errors).toBe('a warning\n');
    expect(out).toContain('task 9 of 3 (1 to 9 by 4)\nepoch 1 of 1: rate 0.0001\n');
  });

  test('torchrun.sh: the script once, srun on both nodes, which meet', async () => {
    const { job, out } = await runScript(
      `--export=PATH=${tools()}:${process.env['PATH']}`,
      'torchrun.sh',
    );
    expect(job).toMatchObject({ state: 'SUCCEEDED', tasks: { total: 2 } });
    expect(out.match(/Node IP: [\d.: ]+, 2 nodes, 2 GPUs each/g)).toHaveLength(1);
    expect(out).toContain('node 0 met [1] for 2 GPUs');
    expect(out).toMatch(/node 1 sees \d,\d/);
  });

  test('mpi.sh: a task per rank, a smaller step, the worst exit code', async () => {
    const { job, out } = await runScript('mpi.sh');
    expect(job.state).toBe('SUCCEEDED');
    for (const rank of [0, 1, 2, 3]) {
      expect(out).toContain(`rank ${rank} of 4, local ${rank} on node 0\n`);
    }
    expect(out).toContain('0: a smaller step\n');
    expect(out).toContain('1: a smaller step\n');
    expect(out).toContain('the worst exit code: 2\n');
  });

  test('submit-chain.sh: each starts when the one before has ended so', async () => {
    const env = { HOME: journey.home, PATH: `${tools()}:${process.env['PATH']}` };
    const chain = await type('./submit-chain.sh', [], { cwd: folder, env }).ended;
    expect(chain).toMatchObject({ code: 0, stderr: '' });
    const last = chain.stdout.trim();
    expect((await journey.ended(last)).state).toBe('SUCCEEDED');
    const { items } = await journey.client.listJobs({ name: 'evaluate' });
    expect((await journey.drover('logs', items[0]!.id)).stdout).toBe('evaluated on rows: 42\n');
    expect((await journey.drover('logs', last)).stdout).toBe('the chain is over\n');
  });

  test('requeue.sh: told before its time is over, it goes on where it was', async () => {
    const limits = ['--time=0:10', '--signal=B:USR1@4', '--export=EPOCH_SECONDS=1.6'];
    const { job, id } = await runScript(...limits, 'requeue.sh');
    expect(job.state).toBe('SUCCEEDED');
    const attempts = await journey.attempts(id);
    expect(attempts.length).toBeGreaterThan(1);
    const log = file('logs/long.out');
    expect(log).toMatch(/start number 1\n[\s\S]*told to end: requeueing \d+\n/);
    expect(log).toMatch(/start number [2-9]\nresumed at epoch \d\n[\s\S]*epoch 4 of 4/);
  });

  test('modules.sh: modules where the machine has them, else a word; conda', async () => {
    const { job, out, err } = await runScript('--constraint=', 'modules.sh');
    expect(job).toMatchObject({ state: 'SUCCEEDED', name: 'conda job' });
    expect(out).toBe('environment: vision, GPUs: 1\npython 3\n');
    expect(err).toMatch(/ignored: module load cuda|Unable to locate a modulefile for 'cuda/);
  });

  test('heredoc.sh: what is in the text is no option', async () => {
    const { job, out } = await runScript('heredoc.sh');
    expect(job.state).toBe('SUCCEEDED');
    expect(file('results/config.yaml')).toContain('name: heredoc.sh\nscratch: set\n');
    expect(out).toContain('from python: heredoc.sh 200 MB\n');
    const name = readdirSync(path.join(folder, 'results')).find((one) => one.endsWith('.out'));
    expect(name).toMatch(/^run \d+\.out$/);
    expect(file(`results/${name}`)).toBe(out);
  });

  test('arguments.sh: its own arguments, and its exit code by --wait', async () => {
    const { code, stdout } = await sbatch('-W', 'arguments.sh', '--seed', '7', 'two words');
    expect(code).toBe(3);
    const id = /Submitted batch job (\S+)/.exec(stdout)?.[1] ?? '';
    expect((await journey.drover('logs', id)).stdout).toBe(
      '3 arguments\n<--seed>\n<7>\n<two words>\n',
    );
  });

  test('analysis.py: any interpreter; -x on the command line goes before the script', async () => {
    const worker = (await journey.client.listWorkers({})).items[0]!.name;
    const { job, out } = await runScript('-w', worker, 'analysis.py');
    expect([job.state, out]).toEqual(['SUCCEEDED', 'python 3 with 2 cores\n']);
  });

  test('two nodes: labels, exit codes, a missing program, a signal to every task', async () => {
    writeFileSync(path.join(folder, 'steps.sh'), STEPS);
    const { job, out, err } = await runScript('steps.sh');
    expect([job.state, err]).toEqual(['SUCCEEDED', expect.stringContaining('no-such-program')]);
    const nodes = ['0: task 0 on 0', '1: task 1 on 0', '2: task 2 on 1', '3: task 3 on 1'];
    for (const line of nodes) expect(out).toContain(`${line}\n`);
    expect(out).toContain('worst 3\nmissing 127\nlines 2\n');
    expect(out).toContain('told 0\n');
    expect(out).toContain('told 1\n');
    expect(out).toMatch(/after the signal 0\n$/);
  });
});

describe('the rest of the way', () => {
  test('--dry-run is a file that submit takes and that runs the same', async () => {
    const { stdout } = await sbatch('--dry-run', '-o', 'dry.out', 'arguments.sh', 'again');
    const yaml = path.join(folder, 'job.yaml');
    writeFileSync(yaml, stdout);
    const { stdout: id } = await journey.drover('submit', '-f', yaml);
    expect(await journey.ended(id.trim())).toMatchObject({ state: 'FAILED', exitCode: 3 });
    expect(file('dry.out')).toBe('1 arguments\n<again>\n');
  });

  test('--workdir . sends the folder along: the worker need not have it', async () => {
    const { job, out } = await runScript('--workdir', '.', 'single-gpu.sh');
    expect(job.state).toBe('SUCCEEDED');
    expect(out).toContain('done with 2 workers\n');
    const { stdout } = await sbatch('--dry-run', '--workdir', '.', 'single-gpu.sh');
    expect(stdout).toContain('\nworkdir: .\n');
  });

  test('cancel reaches the script, and nothing of it is left', async () => {
    const { stdout } = await sbatch('--parsable', '-o', 'cancelled.out', '--wrap', SLOW);
    const id = stdout.trim();
    await until('it runs', () => file('cancelled.out').includes('begun'));
    await journey.drover('cancel', id);
    expect((await journey.ended(id)).state).toBe('CANCELLED');
    expect(file('cancelled.out')).toContain('cleaned up\n');
    // Of the scripts before, too.
    expect(readdirSync(scratch)).toEqual([]);
  });

  test('--test-only plans and submits nothing', async () => {
    const before = (await journey.client.listJobs({ limit: 1 })).items[0]!.id;
    const { code, stdout } = await sbatch('--test-only', 'mpi.sh');
    expect([code, stdout]).toEqual([0, expect.stringContaining('pool default')]);
    expect((await journey.client.listJobs({ limit: 1 })).items[0]!.id).toBe(before);
    rmSync(path.join(folder, 'job.yaml'));
  });
});

const SLOW = 'trap "echo cleaned up; exit 1" TERM; echo begun; while :; do sleep 0.1; done';

const STEPS = `#!/bin/bash
#SBATCH -N2 --ntasks-per-node=2
srun -l sh -c 'echo task $SLURM_PROCID on $SLURM_NODEID; exit $SLURM_PROCID'
echo "worst $?"
srun -n2 no-such-program
echo "missing $?"
echo "lines $(srun -n2 -N2 echo x | wc -l)"
srun -n2 -N2 bash -c 'trap "echo told $SLURM_PROCID; exit 0" USR2; touch ready.$SLURM_PROCID
while :; do sleep 0.1; done' &
until [ -e ready.0 ] && [ -e ready.1 ]; do sleep 0.1; done
kill -USR2 $!
wait $!
echo "after the signal $?"
`;
