/** The wall clock of controller or agent steps by hours: no work is lost, limits still hold. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forever, shell } from '../../support/jobs.ts';
import { QUICK_SUSPECT } from '../../support/leases.ts';
import { isAlive } from '../../support/processes.ts';
import { startServer, type TestAgent, type TestServer } from '../../support/server.ts';
import { until } from '../../support/wait.ts';

const HOUR_MS = 3_600_000;
const LIMIT_MS = 6000;
/** A step is noticed well within this. */
const LOOPS_TURN_MS = 1500;
const LIBRARY = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1',
].find((file) => existsSync(file));

const folder = mkdtempSync(path.join(tmpdir(), 'drover-clock-'));

/** A process with a wall clock of its own; what has run since boot stays true. */
function clockOf(name: string) {
  if (!LIBRARY) throw new Error('libfaketime is not installed: make system-packages');
  const file = path.join(folder, name);
  const step = (hours: number): void =>
    writeFileSync(file, `${hours < 0 ? '-' : '+'}${Math.abs(hours) * 3600}\n`);
  step(0);
  const env = {
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
  };
  return {
    step,
    wrapper: ['env', ...Object.entries(env).map(([key, value]) => `${key}=${value}`)],
  };
}

const controllerClock = clockOf('controller');
const agentClock = clockOf('agent');
let server: TestServer;
let agent: TestAgent;
beforeAll(async () => {
  server = await startServer({ env: QUICK_SUSPECT, wrapper: controllerClock.wrapper });
  agent = server.agent('a', {
    wrapper: agentClock.wrapper,
    // An agent whose clock is hours off would ask for no work; here it shall get some.
    env: { DROVER_AGENT_HEALTH: '{warnOnly: [clock]}' },
  });
  await server.online(1);
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

/** What the controller takes for the time, compared with ours. */
async function controllerIsAheadMs(): Promise<number> {
  const job = await server.submit(forever({ resources: { cpuMillis: 900_000 } }));
  const { createdAtMs } = await server.client.getJob(job);
  await server.client.cancelJob(job);
  return createdAtMs - Date.now();
}

/** Output is stamped by the agent that sent it. */
async function agentIsAheadMs(): Promise<number> {
  const job = await server.submit(shell('echo now'));
  await server.ended(job);
  for await (const { atMs } of server.client.followLogs(job)) return atMs - Date.now();
  throw new Error('no output');
}

const CASES = [
  { who: 'controller', clock: controllerClock, aheadMs: controllerIsAheadMs },
  { who: 'agent', clock: agentClock, aheadMs: agentIsAheadMs },
] as const;

for (const { who, clock, aheadMs } of CASES) {
  test(`the ${who}'s clock steps forward and back: nothing lost, limits hold`, async () => {
    const long = await server.running(forever({ timeLimitMs: HOUR_MS / 2 }));
    const begunAt = performance.now();
    const limited = await server.running(forever({ timeLimitMs: LIMIT_MS }));
    const pid = await until('a pid', () => agent.taskPid(long.attempt.uid));
    for (const hours of [1, -2, 0]) {
      clock.step(hours);
      expect(Math.abs((await aheadMs()) - hours * HOUR_MS)).toBeLessThan(HOUR_MS / 10);
      await delay(LOOPS_TURN_MS);
      // Not suspected: its silence is not counted by a clock that steps.
      expect((await server.client.listWorkers({})).items).toMatchObject([{ state: 'ONLINE' }]);
      const early = performance.now() - begunAt < LIMIT_MS - 1000;
      if (early) expect((await server.attempts(limited.job))[0]?.state).toBe('RUNNING');
    }
    await server.ended(limited.job);
    expect(performance.now() - begunAt).toBeGreaterThan(LIMIT_MS);
    expect(await server.attempts(limited.job)).toMatchObject([{ n: 1, cause: 'timed-out' }]);
    expect(await server.attempts(long.job)).toMatchObject([
      { n: 1, uid: long.attempt.uid, state: 'RUNNING' },
    ]);
    expect(isAlive(pid)).toBe(true);
  });
}

test('a retry that waits is not put off by a step back', async () => {
  const { job } = await server.running(shell('sleep 0.3; exit 1', { retries: 1 }));
  await until('the first attempt ended', async () => (await server.attempts(job))[0]?.endedAtMs);
  controllerClock.step(-2);
  expect(await server.ended(job, 15_000)).toMatchObject({ state: 'FAILED', exitCode: 1 });
  expect(await server.attempts(job)).toHaveLength(2);
  controllerClock.step(0);
});

test('a controller that starts in the past takes up everything', async () => {
  const { job, attempt } = await server.running(forever());
  controllerClock.step(-2);
  await server.kill();
  await server.start();
  await server.ended(await server.submit(shell('true')));
  expect(await server.attempts(job)).toMatchObject([{ uid: attempt.uid, state: 'RUNNING' }]);
  controllerClock.step(0);
});
