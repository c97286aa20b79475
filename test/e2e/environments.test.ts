/**
 * What jobs run in without an image: lock files by real pip, uv and py-rattler, modules by the real
 * thing.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROOT, startJourney, type Ended, type Journey } from '../support/journey.ts';
import { makeChannel } from '../support/condaChannel.ts';
import { environmentPython } from '../support/python.ts';
import { makeWheel } from '../support/wheels.ts';

const programs = environmentPython();
const hasModules = modulesAreHere();
const folder = mkdtempSync(path.join(tmpdir(), 'drover-e2e-environments-'));
const wheels = path.join(folder, 'wheels');
const fromWheels = `--no-index\n--find-links ${wheels}\n`;
let journey: Journey;

beforeAll(async () => {
  makeWheel(wheels, 'sheep', '1.0');
  makeWheel(wheels, 'sheep', '2.0');
  write('modulefiles/tool/1.0', '#%Module\nsetenv TOOL_VERSION 1.0\nprepend-path PATH /opt/tool\n');
  journey = await startJourney({
    args: ['--resources', 'cpus=4,mem=2Gi'],
    env: {
      MODULEPATH: path.join(folder, 'modulefiles'),
      DROVER_AGENT_CONTAINER_RUNTIME: 'none',
    },
  });
});
afterAll(async () => {
  await journey.close();
  rmSync(folder, { recursive: true, force: true });
});

function modulesAreHere(): boolean {
  if (existsSync('/usr/share/modules/init/sh')) return true;
  const message = 'environment-modules is not installed (make system-packages)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`NOT TESTED: ${message}`);
  return false;
}

function write(name: string, text: string): void {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

const run = (...args: string[]): Promise<Ended> =>
  journey.start(['run', ...args], { cwd: folder }).ended;
const python = (code: string): string[] => ['--', 'python3', '-c', code];
const built = (): string[] => readdirSync(path.join(journey.dir, 'agent', 'environments'));
const ACTIVATION = {
  'etc/conda/activate.d/meadow.sh': 'echo hello\nexport MEADOW=$CONDA_PREFIX/share/meadow\n',
};
const SHOW = 'import sheep, sys; print(sheep.VERSION, sys.prefix)';

test('a requirements.txt that goes along is built once, also by two at a time', async () => {
  write('plain/requirements.txt', `${fromWheels}-r more.txt\n`);
  write('plain/more.txt', 'sheep<2\n');
  const two = await Promise.all([
    run('--workdir', './plain', ...python(SHOW)),
    run('--workdir', './plain', ...python(SHOW)),
  ]);
  const again = await run('--workdir', './plain', '--cpus', '2', ...python(SHOW));
  for (const { code, stdout, stderr } of [...two, again]) {
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe(two[0].stdout);
  }
  expect(again.stdout).toMatch(/^1\.0 .*agent\/environments\//);
  expect(built()).toHaveLength(1);
  const job = (await journey.client.listJobs({ limit: 1 })).items[0]!;
  const [attempt] = await journey.attempts(job.id);
  expect(attempt?.facts).toMatchObject({
    'lock.file': 'requirements.txt',
    'lock.hash': expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
  });
  const without = await run('--workdir', './plain', '--no-lock', ...python(SHOW));
  expect(without.stderr).toContain("No module named 'sheep'");
});

test('a file it names that changed makes another', async () => {
  write('plain/more.txt', 'sheep==2.0\n');
  const { code, stdout } = await run('--workdir', './plain', ...python(SHOW));
  expect([code, stdout.split(' ')[0]]).toEqual([0, '2.0']);
  expect(built()).toHaveLength(2);
});

test('the example, from an index that the job names', async () => {
  makeWheel(wheels, 'packaging', '24.2');
  const example = path.join(ROOT, 'examples', 'environment');
  const index = ['--env', 'PIP_NO_INDEX=1', '--env', `PIP_FIND_LINKS=${wheels}`];
  const flags = ['--workdir', path.relative(folder, example), ...index];
  const { code, stdout } = await run(...flags, '--', 'python', 'train.py');
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^packaging 24\.2 in .*environments/)]);
});

test('a lock file that does not resolve is named, and nothing half built is left', async () => {
  const before = built();
  write('broken/requirements.txt', `${fromWheels}sheep==99\n`);
  const { code, stderr } = await run('--workdir', './broken', '--', 'echo', 'never');
  expect(code).not.toBe(0);
  expect(stderr).toContain('its environment could not be built from requirements.txt');
  expect(stderr).toMatch(/sheep==99/);
  write('local/requirements.txt', '-e .\n');
  const local = await run('--workdir', './local', '--', 'true');
  expect(local.stderr).toContain('requirements.txt line 1 installs a folder (-e .)');
  write('conda/environment.yml', 'dependencies: [python]\n');
  const offline = ['--env', 'PIP_NO_INDEX=1', '--env', 'PIP_FIND_LINKS='];
  const conda = await run('--workdir', './conda', ...offline, '--', 'true');
  expect(conda.stderr).toContain('this worker lacks micromamba, mamba or conda, and py-rattler');
  write('conda/environment.yml', 'dependencies: [{pip: [-e .]}]\n');
  const folders = await run('--workdir', './conda', '--', 'true');
  expect(folders.stderr).toContain('environment.yml installs a file or folder (-e .)');
  const named = await run('--workdir', './broken', '--lock', 'other.txt', '--', 'true');
  expect(named.stderr).toContain('there is no lock file other.txt');
  const none = await run('--lock', 'auto', '--', 'true');
  expect(none.stderr).toContain('there is none of uv.lock, requirements.txt');
  expect(built()).toEqual(before);
});

test.runIf(programs)(
  'a uv.lock: the locked versions, and the project itself by its path',
  async () => {
    write('project/pyproject.toml', pyproject());
    write('project/src/shepherd.py', 'NAME = "shepherd"\n');
    execFileSync(path.join(programs!, 'uv'), ['lock', '--quiet'], {
      cwd: path.join(folder, 'project'),
    });
    const show = 'import sheep, shepherd; print(sheep.VERSION, shepherd.NAME)';
    const { code, stdout, stderr } = await run(
      ...['--workdir', './project', '--env', `PATH=${process.env['PATH']}:${programs}`],
      ...python(show),
    );
    expect([code, stdout, stderr]).toEqual([0, '1.0 shepherd\n', '']);
  },
);

test.runIf(programs)('an environment.yml is solved, built once, activated and run', async () => {
  const channel = path.join(folder, 'channel');
  makeChannel(channel, [
    { name: 'sheep', version: '1.0', depends: ['meadow >=1'], files: sheep('1.0') },
    { name: 'sheep', version: '2.0', depends: ['meadow >=3'], files: sheep('2.0') },
    { name: 'meadow', version: '1.2', files: { 'share/meadow': 'green\n', ...ACTIVATION } },
  ]);
  const environment = `channels: ['file://${channel}']\ndependencies: [sheep]\n`;
  write('flock/environment.yml', `${environment}variables: {DOG: rex}\n`);
  const before = built().length;
  const PATH = `PATH=${programs}:${process.env['PATH']}`;
  const flags = ['--workdir', './flock', '--env', PATH, '--', 'sheep'];
  const two = await Promise.all([run(...flags), run(...flags)]);
  for (const { code, stdout, stderr } of two) {
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^1\.0 rex .*environments.*\/env\/share\/meadow\ngreen\n$/);
  }
  expect(built()).toHaveLength(before + 1);
  write('flock/environment.yml', environment.replace('[sheep]', '["sheep>=2"]'));
  const { code, stderr } = await run(...flags);
  expect(code).not.toBe(0);
  expect(stderr).toContain('its environment could not be built from environment.yml');
  expect(stderr).toMatch(/meadow >=3/);
  write('flock/environment.yml', `${environment}  - nothing\n`);
  expect((await run(...flags)).stderr).toContain('environment.yml is no environment');
  expect(built()).toHaveLength(before + 1);
});

test.runIf(hasModules)('modules are loaded; one that is not there is named', async () => {
  const script = 'echo $TOOL_VERSION $PATH $KEPT';
  const flags = ['--module', 'tool/1.0', '--env', 'KEPT=too'];
  const { code, stdout } = await run(...flags, '--', 'sh', '-c', script);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^1\.0 \/opt\/tool:.* too\n$/)]);
  const absent = await run('--module', 'nope/3', '--', 'true');
  expect(absent.code).not.toBe(0);
  expect(absent.stderr).toContain('module load nope/3 failed on this worker');
});

test('an image where nothing starts one waits, and says what would help', async () => {
  const id = await journey.submit({ command: ['true'], environment: { image: 'python:3.13' } });
  const why = await journey.drover('why', id);
  expect(why.stdout).toMatch(/can start images/);
});

/** A program that shows what its environment set. */
function sheep(version: string): Record<string, string> {
  return { 'bin/sheep': `#!/bin/sh\necho ${version} $DOG $MEADOW\ncat $MEADOW\n` };
}

function pyproject(): string {
  return [
    '[project]',
    'name = "shepherd"',
    'version = "0.1.0"',
    'requires-python = ">=3.9"',
    'dependencies = ["sheep<2"]',
    '[tool.uv]',
    'no-index = true',
    `find-links = ["${wheels}"]`,
    '',
  ].join('\n');
}
