/** `drover simulate` as a user types it: the examples, wrong files, wrong words. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { simulate } from '../bin/simulate.ts';
import type { Simulation } from '../protocol/simulation.ts';
import { capture } from './captured.ts';
import { addJob } from './fakeJobs.ts';
import { startFakeServer } from './fakeServer.ts';

const EXAMPLES = path.resolve(import.meta.dirname, '../../examples/simulate');
const FLEET = path.join(EXAMPLES, 'fleet.yaml');
const LAB = path.join(EXAMPLES, 'lab.yaml');

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(path.join(tmpdir(), 'drover-simulate-'));
});
afterEach(() => rmSync(cwd, { recursive: true }));

const drover = (args: string[], more: object = {}) =>
  capture(['simulate', ...args], { cwd, simulate, ...more });

function file(name: string, text: string): string {
  writeFileSync(path.join(cwd, name), text);
  return name;
}

async function json(args: string[], more: object = {}): Promise<Simulation> {
  const { code, stdout, stderr } = await drover([...args, '--json'], more);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as Simulation;
}

/** How fast it was differs from time to time. */
const withoutSpeed = ({ runs, ...rest }: Simulation) => ({
  ...rest,
  runs: runs.map((run) => ({ ...run, speed: null })),
});

describe('the examples', () => {
  test('the lab on its fleet: waits, pools and tenants in tables', async () => {
    const { code, stdout, stderr } = await drover([LAB, '--fleet', FLEET]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const word of ['wait p50', 'interactive', 'a100', 'vision', 'cost of use', 'ALWAYS ON']) {
      expect(stdout).toContain(word);
    }
  });

  test('against a larger fleet: two columns, and a drawing', async () => {
    const larger = path.join(EXAMPLES, 'larger.yaml');
    const args = [LAB, '--fleet', FLEET, '--against', larger, '--svg', 'out.svg'];
    const { code, stdout } = await drover(args);
    expect(code).toBe(0);
    expect(stdout.split('\n')[0]).toMatch(/fleet\.yaml {2}larger\.yaml$/);
    expect(readFileSync(path.join(cwd, 'out.svg'), 'utf8')).toContain('waiting: larger.yaml');
  });

  test('the same seed gives the same, another does not', async () => {
    const run = (seed: string) => json([LAB, '--fleet', FLEET, '--seed', seed]);
    const [first, again, other] = [await run('7'), await run('7'), await run('8')];
    expect(withoutSpeed(again)).toEqual(withoutSpeed(first));
    expect(withoutSpeed(other)).not.toEqual(withoutSpeed(first));
  });

  test('a Slurm site’s accounting beside what was recorded', async () => {
    const sacct = path.join(EXAMPLES, 'sacct.txt');
    const { code, stdout, stderr } = await drover(['--sacct', sacct, '--fleet', FLEET]);
    expect(code).toBe(0);
    expect(stdout).toContain('as recorded');
    expect(stderr).toMatch(/left out 1: it had not started \(line \d+\)/);
  });
});

test('another policy is another column', async () => {
  const args = [LAB, '--fleet', FLEET, '--policy2', 'bands=off'];
  const { runs } = await json(args);
  expect(runs.map(({ name }) => name)).toEqual(['fleet.yaml', 'fleet.yaml bands=off']);
  expect(runs[1]?.wait.map(({ band }) => band)).toEqual(['batch', 'all']);
});

test('a server’s history on its own workers and on others', async () => {
  const fake = await startFakeServer();
  try {
    const { view, tasks } = addJob(fake, { command: ['x'], resources: { cpuMillis: 1000 } });
    const endedAtMs = view.createdAtMs + 70_000;
    const times = { startedAtMs: view.createdAtMs + 10_000, endedAtMs };
    Object.assign(view, { state: 'SUCCEEDED', exitCode: 0, ...times });
    Object.assign(tasks[0]!, times);
    addJob(fake, { command: ['waits'] });
    fake.workers.push({
      id: 'w1',
      name: 'one',
      pool: 'default',
      network: 'lan',
      attributes: {},
      total: { cpuMillis: 4000, memoryBytes: 2 ** 30, devices: 0 },
      devices: [],
    } as never);
    const { workload, runs } = await json(['--from-server'], { url: fake.url });
    expect(workload).toMatchObject({
      jobs: 1,
      skipped: [{ reason: 'it has not run', count: 1 }],
    });
    expect(workload.recorded?.at(-1)?.maxMs).toBe(10_000);
    expect(runs[0]).toMatchObject({ fleet: { workers: 1, cpus: 4 }, makespanMs: 60_000 });
    const other = await json(['--from-server', '--fleet', FLEET, '--since', '1d'], {
      url: fake.url,
    });
    expect(other.runs[0]?.fleet.workers).toBe(10);
    const none = await drover(['--from-server', '--since', '0s'], { url: fake.url });
    expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('--since 30d') });
  } finally {
    await fake.close();
  }
});

describe('wrong words', () => {
  test.each([
    [[], 'WORKLOAD is missing'],
    [['w.yaml'], 'w.yaml cannot be read'],
    [['--sacct', 'gone.txt', '--fleet', FLEET], 'gone.txt cannot be read'],
    [[LAB], '--fleet FILE is missing'],
    [[LAB, '--fleet', FLEET, '--sacct', 'x'], 'exclude each other'],
    [[LAB, '--fleet', FLEET, '--since', '1d'], '--since goes with --from-server'],
    [[LAB, '--fleet', FLEET, '--seed', 'x'], '--seed "x" is not a whole number'],
    [[LAB, '--fleet', FLEET, '--until', 'x'], '--until "x" is not a duration'],
    [[LAB, '--fleet', FLEET, '--svg', 'no/such/folder.svg'], 'cannot be written'],
    [[LAB, '--fleet', FLEET, '--flete', 'x'], 'did you mean --fleet?'],
  ])('%j', async (args, message) => {
    const { code, stderr } = await drover(args);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });

  test.each([
    ['tock=1s', 'did you mean tick?'],
    ['tick', 'is not key=value'],
    ['bands=maybe', 'bands is on or off'],
    ['band.high=top', 'is one of production, interactive, batch'],
  ])('--policy %s', async (policy, message) => {
    const { code, stderr } = await drover([LAB, '--fleet', FLEET, '--policy', policy]);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});

describe('wrong files', () => {
  test.each([
    ['jobs: [', 'w.yaml does not fit'],
    ['job: []', 'there is no key "job"; did you mean jobs?'],
    ['jobs: []', 'jobs: '],
    ['jobs: [{durration: 1h}]', 'jobs[0]: unknown key "durration"; did you mean duration?'],
    ['jobs: [{gpu: 1, duration: 1h}]', 'did you mean gpus?'],
    ['jobs: [{cpus: many, duration: 1h}]', 'jobs[0]: cpus "many"'],
    ['jobs: [{cpus: 1}]', 'jobs[0].duration: expected 2h, {uniform'],
    ['jobs: [{duration: soon}]', 'jobs[0].duration: duration "soon" is not a duration'],
    ['jobs: [{duration: 1h, every: 1m}]', 'jobs[0]: it comes again and again'],
    ['jobs: [{duration: 1h, poisson: often, count: 2}]', '"often" is not a rate'],
    ['jobs: [{duration: 1h, every: 1m, poisson: 1/h, count: 2}]', 'exclude each other'],
    ['jobs: [{name: a, duration: 1h}, {after: b, duration: 1h}]', 'no job named "b"'],
    ['jobs: [{duration: 1h, priority: top}]', 'jobs[0].priority'],
    ['jobs: [{duration: 1h, failures: 2}]', 'jobs[0].failures'],
  ])('the workload %s', async (text, message) => {
    const { code, stderr } = await drover([file('w.yaml', text), '--fleet', FLEET]);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });

  test.each([
    ['pools: {}', 'there is no worker'],
    ['pool: {}', 'did you mean pools?'],
    ['pools: {a: {workers: {cpu: 1, mem: 1G}}}', 'no key "cpu"; did you mean cpus?'],
    [
      'pools: {a: {workers: {cpus: 1, mem: 1G}, price: 3}}',
      'no key "price"; known are workers, pricePerDeviceHour',
    ],
    ['pools: {a: {workers: {cpus: 1, mem: much}}}', 'pools.a.workers[0]: mem "much"'],
    ['pools: {a: {workers: {cpus: 1, mem: 1G, gpus: "x:y"}}}', 'pools.a.workers[0]'],
    ['{pools: {a: {workers: {cpus: 1, mem: 1G}}}, budgets: [{tenant: x, wait: 2}]}', 'budgets[0]'],
  ])('the fleet %s', async (text, message) => {
    const { code, stderr } = await drover([LAB, '--fleet', file('f.yaml', text)]);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});
