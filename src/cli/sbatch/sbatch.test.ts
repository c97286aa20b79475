/** drover sbatch as it is typed: what is submitted, printed and refused. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { capture } from '../captured.ts';
import { startFakeServer, type FakeServer } from '../fakeServer.ts';
import { SCRIPT_BYTES } from './sbatch.ts';

let fake: FakeServer;
let home: string;
beforeEach(async () => {
  fake = await startFakeServer();
  home = mkdtempSync(path.join(tmpdir(), 'drover-sbatch-test-'));
  writeFileSync(path.join(home, 'job.sh'), '#!/bin/bash\n#SBATCH -A lab -t 5\necho hi\n');
});
afterEach(async () => {
  await fake.close();
  rmSync(home, { recursive: true });
});

const sbatch = (args: string[], more: { env?: Record<string, string>; stdin?: string } = {}) =>
  capture(['sbatch', ...args], {
    url: fake.url,
    cwd: home,
    ...more,
    env: { HOME: home, ...more.env },
  });
const specOf = (id: string) => fake.jobs.get(id)!.spec;

test('prints as sbatch does, and lists on stderr what was not mapped', async () => {
  const { code, stdout, stderr } = await sbatch(['job.sh', '-x', '--json']);
  expect([code, stdout]).toEqual([0, 'Submitted batch job j1\n']);
  expect(stderr).toMatch(/^drover: not mapped: --account=lab \(line 2\): charges/);
  expect(specOf('j1').command.slice(3)).toEqual(['job.sh', '-x', '--json']);
  expect((await sbatch(['--parsable', 'job.sh'])).stdout).toBe('j2\n');
  expect((await sbatch(['-Q', 'job.sh'])).stdout).toBe('');
});

test('--json has the id and the list', async () => {
  const { stdout } = await sbatch(['--json', 'job.sh']);
  expect(JSON.parse(stdout)).toEqual({
    id: 'j1',
    unmapped: [{ option: '--account=lab', from: 'line 2', why: expect.any(String) }],
  });
});

test('--dry-run prints YAML and calls nobody; with --json the same as JSON', async () => {
  const { code, stdout } = await sbatch(['--dry-run', 'job.sh', 'a']);
  expect([code, fake.requests.length]).toEqual([0, 0]);
  expect(parse(stdout)).toMatchObject({ name: 'job.sh', time: '5', workdir: home });
  const json = JSON.parse((await sbatch(['--dry-run', '--json', 'job.sh'])).stdout);
  expect(json).toMatchObject({ job: { name: 'job.sh' }, unmapped: [{}] });
});

test('--strict refuses what could not be mapped', async () => {
  const { code, stderr } = await sbatch(['--strict', 'job.sh']);
  expect([code, fake.jobs.size]).toEqual([2, 0]);
  expect(stderr).toContain('1 option could not be mapped: --account=lab (line 2)');
});

test('a command by --wrap, a script from stdin, variables', async () => {
  await sbatch(['--wrap', 'hostname'], { env: { SBATCH_JOB_NAME: 'named' } });
  expect(specOf('j1')).toMatchObject({ name: 'named' });
  expect(specOf('j1').env?.['DROVER_SBATCH_SCRIPT']).toBe('#!/bin/sh\nhostname\n');
  await sbatch([], { stdin: '#!/bin/sh\n#SBATCH -J piped\n' });
  expect(specOf('j2')).toMatchObject({ name: 'piped' });
});

test('singleton waits for what has that name', async () => {
  await sbatch(['-J', 'one', 'job.sh']);
  await sbatch(['-J', 'one', '-d', 'singleton', 'job.sh']);
  expect(specOf('j2').after).toEqual([{ job: 'j1', when: 'any' }]);
});

test.each([
  [['none.sh'], 'none.sh cannot be read'],
  [['--wrap=x', 'job.sh'], '--wrap and a script exclude each other'],
  [['--tiem=5', 'job.sh'], 'unknown option --tiem'],
  [['big.sh'], `the limit is ${SCRIPT_BYTES}`],
  [['text'], 'does not look like a batch script'],
])('%j is refused', async (args, message) => {
  writeFileSync(path.join(home, 'big.sh'), `#!/bin/sh\n${'#'.repeat(SCRIPT_BYTES)}`);
  writeFileSync(path.join(home, 'text'), 'echo hi\n');
  const { code, stderr } = await sbatch(args);
  expect([code, fake.jobs.size]).toEqual([2, 0]);
  expect(stderr).toContain(message);
});
