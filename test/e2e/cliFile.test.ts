/** The command line as one file, alone in an empty folder: a server far away, contexts, shells. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { bundleCli } from '../../tools/bundleCli.ts';
import { ROOT, startJourney, type, until } from '../support/journey.ts';
import type { Journey, TypeOptions } from '../support/journey.ts';

let journey: Journey;
let folder: string;
let env: Record<string, string>;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-file-'));
  await bundleCli(path.join(folder, 'made', 'drover'));
  mkdirSync(path.join(folder, 'bin'));
  copyFileSync(path.join(folder, 'made', 'drover'), path.join(folder, 'bin', 'drover'));
  rmSync(path.join(folder, 'made'), { recursive: true });
  const bin = `${path.join(folder, 'bin')}:${path.dirname(process.execPath)}:/usr/bin:/bin`;
  env = { HOME: folder, PATH: bin };
  journey = await startJourney({ args: ['--resources', 'cpus=2,mem=1Gi'] });
  await until('the worker is there', async () =>
    (await journey.client.listWorkers({})).items.some(({ state }) => state === 'ONLINE'),
  );
});
afterAll(async () => {
  await journey.close();
  rmSync(folder, { recursive: true });
});

const drover = (args: string[], options: TypeOptions = {}) =>
  type('drover', args, { cwd: folder, env, ...options }).ended;

test('login, run, submit, sbatch, exec and logs, with nothing beside it', async () => {
  const login = await drover(['login', journey.url, '--name', 'lab'], { input: journey.token });
  expect(login).toMatchObject({ code: 0, stderr: '' });
  const run = await drover(['run', '--', 'sh', '-c', 'echo hi; exit 7']);
  expect(run).toMatchObject({ code: 7, stdout: 'hi\n' });
  writeFileSync(path.join(folder, 'job.yaml'), 'command: sleep 60\n');
  const submitted = await drover(['submit', '-f', 'job.yaml']);
  const id = submitted.stdout.trim();
  await journey.running(id);
  const inside = await drover(['exec', '-T', id, '--', 'echo', 'inside'], { input: '' });
  expect(inside).toMatchObject({ code: 0, stdout: 'inside\n' });
  expect((await drover(['cancel', id])).code).toBe(0);
  const wrapped = await drover(['sbatch', '-W', '-Q', '-o', 'o.txt', '--wrap', 'srun -n2 echo x']);
  expect(wrapped).toMatchObject({ code: 0, stderr: '' });
  expect(readFileSync(path.join(folder, 'o.txt'), 'utf8')).toBe('x\nx\n');
});

test('it says what it is not', async () => {
  expect((await drover(['version'])).stdout).toMatch(/^drover \d+\.\d+\.\d+/);
  expect((await drover(['help'])).stdout).not.toContain('servers:');
  const up = await drover(['up']);
  expect([up.code, up.stderr]).toEqual([2, expect.stringContaining('has the commands only')]);
  const old = type('sh', ['-c', `node -e 0; drover version`], {
    cwd: folder,
    env: { ...env, PATH: `${path.join(folder, 'bin')}:${oldNode()}:/usr/bin:/bin` },
  });
  const { code, stderr } = await old.ended;
  const message = 'error NODE: drover needs Node 24 or newer, this is v20.0.0\n';
  expect([code, stderr]).toEqual([1, message]);
});

/** A Node that says it is an old one. */
function oldNode(): string {
  const place = path.join(folder, 'old');
  mkdirSync(place);
  const preload = path.join(place, 'old.cjs');
  writeFileSync(
    preload,
    "Object.defineProperty(process, 'versions', { value: { node: '20.0.0' } });\n" +
      "Object.defineProperty(process, 'version', { value: 'v20.0.0' });\n",
  );
  const script = `#!/bin/sh\nexec '${process.execPath}' --require '${preload}' "$@"\n`;
  writeFileSync(path.join(place, 'node'), script, { mode: 0o755 });
  return place;
}

/** What bash offers after each list of words, the last of which is being typed. */
function bashOffers(lines: string[][]): string[][] {
  const asked = lines.map((words) => {
    const list = ['drover', ...words].map((word) => `'${word}'`).join(' ');
    return `COMP_WORDS=(${list}); COMP_CWORD=${words.length}; _drover; echo "\${COMPREPLY[@]}"`;
  });
  const script = ['eval "$(drover completion bash)"; compopt() { :; }', ...asked].join('\n');
  const { stdout, stderr } = spawnSync('bash', ['-c', `${script}\ncomplete -p drover`], {
    cwd: folder,
    env,
  });
  expect(stderr.toString()).toBe('');
  const offers = stdout.toString().trimEnd().split('\n');
  expect(offers.pop()).toContain('_drover');
  return offers.map((line) => line.split(' ').filter((word) => word !== ''));
}

test('bash completes commands, options, values, files, contexts and job ids', async () => {
  const { items } = await journey.client.listJobs({ limit: 50 });
  const cases: [string[], string[]][] = [
    [['lo'], ['logs', 'login']],
    [['run', '--arr'], ['--array']],
    [['run', '--priority', 'i'], ['interactive']],
    [['submit', '-f', 'jo'], ['job.yaml']],
    [['context', 'u'], ['use']],
    [['context', 'use', ''], ['lab']],
    [['help', 'sb'], ['sbatch']],
    [['logs', 'j'], items.map(({ id }) => id)],
    [['cancel', ''], []],
  ];
  expect(bashOffers(cases.map(([words]) => words))).toEqual(cases.map(([, offers]) => offers));
});

/** Undefined, and said, where the shell is not installed. */
function inShell(shell: string, args: string[]): string | undefined {
  const ended = spawnSync(shell, args, { cwd: folder, env });
  if (!ended.error) {
    expect(ended.stderr.toString()).toBe('');
    return ended.stdout.toString();
  }
  if (process.env['CI'] === 'true') throw ended.error;
  console.warn(`${shell} is not installed: its completion was not tried`);
  return undefined;
}

test('zsh and fish do too', () => {
  const zsh = inShell('zsh', [
    '-f',
    '-c',
    'compdef() { registered=$* }; _files() { print files }; ' +
      '_describe() { print -l -- "${(@P)2}" }; eval "$(drover completion zsh)"; ' +
      'print $registered; words=(drover cont); CURRENT=2; _drover; ' +
      'words=(drover submit -f ""); CURRENT=4; _drover',
  ]);
  const summary = 'List the servers of `drover login`, choose one, forget one';
  if (zsh !== undefined) expect(zsh).toBe(`_drover drover\ncontext:${summary}\nfiles\n`);
  const ask =
    'drover completion fish | source; complete -C "drover cont"; ' +
    'complete -C "drover submit -f jo"';
  const fish = inShell('fish', ['--no-config', '-c', ask]);
  if (fish !== undefined) expect(fish).toBe(`context\t${summary}\njob.yaml\n`);
});

interface Action {
  inputs: Record<string, { required: boolean; description: string }>;
  runs: { using: string; steps: { name?: string; run?: string; env?: Record<string, string> }[] };
}

const example = (name: string): string =>
  readFileSync(path.join(ROOT, 'examples/github-action', name), 'utf8');

/** A runner's part: values for ${{ inputs.x }}, files for paths and outputs. */
function runStep(step: Action['runs']['steps'][number], inputs: Record<string, string>) {
  const runner = path.join(folder, 'runner');
  mkdirSync(runner, { recursive: true });
  const own = Object.entries(step.env ?? {}).map(([name, text]) => [
    name,
    text.replace(/\$\{\{ inputs\.(\w+) \}\}/g, (_, input: string) => inputs[input]!),
  ]);
  const files = { GITHUB_PATH: `${runner}/path`, GITHUB_OUTPUT: `${runner}/output` };
  const variables = { ...env, ...files, RUNNER_TEMP: runner, ...Object.fromEntries(own) };
  return type('bash', ['-c', step.run!], { cwd: folder, env: variables }).ended;
}

test('the GitHub action: its steps as a runner would run them', async () => {
  const { inputs, runs } = parse(example('action.yml')) as Action;
  expect(runs.using).toBe('composite');
  const [get, submit] = runs.steps.filter((step) => step.run !== undefined);
  // Inputs reach a script as variables only: a text in them must not become a command.
  for (const step of runs.steps) expect(step.run ?? '').not.toContain('${{');
  const { jobs } = parse(example('workflow.yml')) as {
    jobs: { gpu: { steps: { uses: string; with?: Record<string, string> }[] } };
  };
  const used = jobs.gpu.steps.find(({ uses }) => uses.endsWith('/drover'))!;
  expect(Object.keys(used.with!).toSorted()).toEqual(Object.keys(inputs).toSorted());

  const given = { url: journey.url, token: journey.token, client: 'bin/drover', file: 'ci.yaml' };
  expect(await runStep(get!, given)).toMatchObject({ code: 0, stderr: '' });
  expect(readFileSync(path.join(folder, 'runner/path'), 'utf8')).toContain('runner/drover\n');
  writeFileSync(path.join(folder, 'ci.yaml'), '[{command: echo one}, {command: exit 5}]');
  const { code, stdout } = await runStep(submit!, given);
  expect([code, stdout]).toEqual([5, expect.stringMatching(/::group::j\w+\none\n::endgroup::/)]);
  expect(readFileSync(path.join(folder, 'runner/output'), 'utf8')).toMatch(/^jobs=j\w+ j\w+\n$/);
  const refused = await runStep(submit!, { ...given, token: 'drv_wrong' });
  expect(refused.code).not.toBe(0);
});
