/** The agent as one file, on a machine without Node: fetched, joined, killed, told to end. */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { constants } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleAgent, nativeTerminal } from '../../tools/bundleAgent.ts';
import { makeBareMachine, type BareMachine } from '../support/bareMachine.ts';
import { startJourney, until, type Journey, type Typed } from '../support/journey.ts';
import { sweep } from '../support/leftovers.ts';

let folder: string;
let journey: Journey;
let machine: BareMachine;
/** The one that runs. */
let agent: Typed;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-agent-file-'));
  const file = await bundleAgent(path.join(folder, 'install'), constants.Z_BEST_SPEED);
  machine = makeBareMachine(path.join(folder, 'machine'), [file, nativeTerminal()]);
  journey = await startJourney({
    args: ['--no-agent'],
    env: { DROVER_SERVER_INSTALL_FOLDER: path.join(folder, 'install') },
  });
});
afterAll(async () => {
  await journey.close();
  sweep(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
});

const RESOURCES = '--resources cpus=2,mem=1Gi';
const home = (...names: string[]): string => path.join(machine.root, 'worker', ...names);
const agentPid = (): number =>
  Number(readFileSync(home('.drover/agent/agent.pid'), 'latin1').split(' ')[0]);
const kept = (): string[] => readdirSync(home('.cache/drover'));

/** The line that `drover tokens create` shows. */
async function joinLine(): Promise<{ line: string; token: string }> {
  const { stdout, stderr } = await journey.drover('tokens', 'create', '--kind', 'join');
  const line = /: (curl .* sh)\n/.exec(stderr)?.[1];
  expect(line).toBe(`curl -fsS ${journey.url}/install/join.sh | DROVER_JOIN_TOKEN=TOKEN sh`);
  // There is no curl on this machine.
  return { line: line!.replace('curl -fsS', 'wget -q -O -'), token: stdout.trim() };
}

async function online(joining: Typed, name: string): Promise<void> {
  const found = await until('the worker is there', async () => {
    if (joining.child.exitCode !== null) return joining.stderr();
    const { items } = await journey.client.listWorkers({});
    return items.some((worker) => worker.name === name && worker.state === 'ONLINE');
  });
  expect(found).toBe(true);
}

test('one line of shell joins; a job survives kill -9 of the agent', async () => {
  const { line, token } = await joinLine();
  const begin = line.replace('TOKEN=TOKEN sh', `TOKEN=${token} sh -s -- ${RESOURCES} --name bare`);
  const first = machine.run(begin);
  await online(first, 'bare');
  const pid = agentPid();
  expect(readFileSync(`/proc/${pid}/cmdline`, 'latin1')).not.toContain(token);
  expect(kept()).toEqual([expect.stringMatching(/^agent-[0-9a-f]{64}$/)]);
  const script =
    'echo one; echo 1 >"$DROVER_CHECKPOINT_DIR/x.tmp"; sleep 1; ' +
    'mv "$DROVER_CHECKPOINT_DIR/x.tmp" "$DROVER_CHECKPOINT_DIR/x"; ' +
    'until [ -e /worker/go ]; do sleep 0.1; done; echo two; exit 7';
  const job = await journey.submit({
    command: ['sh', '-c', script],
    checkpoint: { everyMs: 1000 },
    retries: 0,
  });
  await journey.running(job);
  const { stdout: terminal } = await journey.terminal(['exec', job, '--', 'tty'], {
    cols: 80,
    rows: 24,
  });
  expect(terminal).toContain('/dev/pts/');
  await until('a checkpoint is there', async () => {
    const { body } = await journey.api(`GET /v1/jobs/${job}/checkpoints`);
    return (body['data'] as unknown[]).length > 0;
  });
  process.kill(pid, 'SIGKILL');
  await first.ended;
  // As a supervisor would: the same line without its token.
  agent = machine.run(line.replace('DROVER_JOIN_TOKEN=TOKEN', '') + ` -s -- ${RESOURCES}`);
  await until('another agent', () => agentPid() !== pid);
  writeFileSync(home('go'), '');
  expect(await journey.ended(job)).toMatchObject({ state: 'FAILED', exitCode: 7 });
  expect(await journey.attempts(job)).toHaveLength(1);
  expect((await journey.drover('logs', job)).stdout).toBe('one\ntwo\n');
  expect(kept()).toHaveLength(1);
});

test('a notice of the end: its job is interrupted with grace, its last words arrive', async () => {
  const script = "trap 'echo bye; exit 0' TERM; echo hello; while :; do sleep 0.1; done";
  const job = await journey.submit({ command: ['sh', '-c', script], graceMs: 20_000 });
  await journey.running(job);
  await until('it speaks', async () => (await journey.drover('logs', job)).stdout !== '');
  process.kill(agentPid(), 'SIGUSR1');
  const { code, stderr } = await agent.ended;
  expect([code, stderr]).toEqual([0, expect.not.stringContaining('Debugger')]);
  const [attempt] = await journey.attempts(job);
  expect(attempt).toMatchObject({ state: 'ENDED', cause: 'preempted' });
  expect((await journey.drover('logs', job)).stdout).toBe('hello\nbye\n');
  expect((await journey.client.getJob(job)).state).toBe('PENDING');
  const { items } = await journey.client.listWorkers({});
  expect(items[0]?.problems).toMatchObject([{ check: 'ending', severity: 'drain' }]);
  // It is no fault of the host.
  expect((await journey.client.listHosts()).filter(({ faults }) => faults > 0)).toEqual([]);
  await journey.client.cancelJob(job);
});

test('without contact it ends itself, by the command that was given', async () => {
  const [file] = kept();
  const lone = machine.run(`exec /worker/.cache/drover/${file} --join http://127.0.0.1:1`, {
    DROVER_JOIN_TOKEN: 'drj_x',
    DROVER_AGENT_DATA_DIR: '/worker/third',
    DROVER_AGENT_SELF_DESTRUCT_AFTER_MS: '1000',
    DROVER_AGENT_SELF_DESTRUCT_COMMAND: 'echo "ends $SLURM_JOB_ID" >/worker/ended',
    SLURM_JOB_ID: '4711',
  });
  const { code, stderr } = await lone.ended;
  expect([code, stderr]).toEqual([120, expect.stringContaining('no contact for')]);
  expect(readFileSync(home('ended'), 'utf8')).toBe('ends 4711\n');
});

test('on a login node the same file is a connector', async () => {
  const [file] = kept();
  const words = `connector --site x --listen 127.0.0.1:0 --join ${journey.url}`;
  const env = { DROVER_JOIN_TOKEN: 'drj_x' };
  const { code, stderr } = await machine.run(`exec /worker/.cache/drover/${file} ${words}`, env)
    .ended;
  expect([code, stderr]).toEqual([1, expect.stringContaining('the join token is unknown')]);
});

test('not wanted, it ends at once; TERM is notice where the machine was asked for', async () => {
  const refusal = { code: 'INSTANCE_ENDED', detail: 'instance i1 is to end' };
  const server = createServer((_request, response) => {
    response.writeHead(410, { 'content-type': 'application/problem+json' });
    response.end(JSON.stringify(refusal));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const [file] = kept();
  const env = { DROVER_JOIN_TOKEN: 'drj_x', DROVER_AGENT_INSTANCE: 'i1' };
  const unwanted = machine.run(`exec /worker/.cache/drover/${file}`, {
    ...env,
    DROVER_URL: `http://127.0.0.1:${port}`,
    DROVER_AGENT_DATA_DIR: '/worker/unwanted',
  });
  const waiting = machine.run(`exec /worker/.cache/drover/${file} --join http://127.0.0.1:1`, {
    ...env,
    DROVER_AGENT_DATA_DIR: '/worker/waiting',
  });
  const { code, stderr } = await unwanted.ended;
  expect([code, stderr]).toEqual([121, expect.stringContaining(refusal.detail)]);
  await until('it tries', () => waiting.stderr().includes('trying again'));
  waiting.child.kill('SIGTERM');
  expect(await waiting.ended).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('the machine ends: SIGTERM'),
  });
  server.close();
});

test('what is wrong with its command line is said, with the code for that', async () => {
  const [file] = kept();
  const { code, stderr } = await machine.run(`/worker/.cache/drover/${file} --jion x`).ended;
  expect([code, stderr]).toEqual([2, expect.stringContaining('--jion')]);
});
