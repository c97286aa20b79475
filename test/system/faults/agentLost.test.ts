/**
 * An agent silent for longer than the attempt lease: its processes are gone before its work begins
 * elsewhere, and whatever it says when it comes back changes nothing.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AGENT_PATHS } from '../../../src/protocol/agent.ts';
import { gate, shell } from '../../support/jobs.ts';
import { QUICK_LOSS } from '../../support/leases.ts';
import { isAlive } from '../../support/processes.ts';
import { startProxy, type FaultProxy } from '../../support/proxy.ts';
import { startServer, type TestAgent, type TestServer } from '../../support/server.ts';
import { until } from '../../support/wait.ts';

let server: TestServer;
let proxy: FaultProxy;
beforeAll(async () => {
  server = await startServer({ env: QUICK_LOSS });
  proxy = await startProxy(server.url);
});
afterAll(async () => {
  await server.close();
  await proxy.close();
});

/** An agent of a kind of its own, so that both tests can wait at the same time. */
function pair(kind: string, first: Parameters<TestServer['agent']>[1] = {}) {
  const resources = `cpus=4,mem=1Gi,gpus=1:${kind}`;
  const spec = { resources: { cpuMillis: 100, device: { models: [kind] } } };
  return {
    silent: server.agent(`${kind}-silent`, { ...first, resources }),
    other: () => server.agent(`${kind}-other`, { resources }),
    /** Cannot be asked to leave; says which attempt it is for as long as it lives. */
    stubborn: (file: string, wait: string) =>
      shell(
        `trap '' TERM; (while :; do echo $DROVER_ATTEMPT >>${file}; sleep 0.05; done) & ` +
          `${wait}; kill -9 $!`,
        spec,
      ),
  };
}

/** Waits until the attempt is lost; its process must be gone by then. */
async function whenLost(job: string, uid: string, pid: number): Promise<void> {
  await until('the attempt is lost', async () => {
    const first = (await server.attempts(job)).find((one) => one.uid === uid);
    if (first?.state !== 'ENDED') return false;
    expect(isAlive(pid)).toBe(false);
    expect(first.cause).toBe('lost');
    return true;
  });
}

/** All of the first attempt's lines come before all of the second's: they never ran together. */
function expectNoOverlap(file: string): void {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const firsts = lines.filter((line) => line === '1').length;
  expect(firsts).toBeGreaterThan(10);
  expect(lines.slice(0, firsts).every((line) => line === '1')).toBe(true);
  expect(lines.slice(firsts).every((line) => line === '2')).toBe(true);
  expect(lines.length).toBeGreaterThan(firsts);
}

async function expectOnlySecondCounts(job: string, first: string, second: TestAgent) {
  const attempts = await server.attempts(job);
  expect(attempts).toMatchObject([
    { n: 1, uid: first, state: 'ENDED', cause: 'lost', exitCode: null },
    { n: 2 },
  ]);
  expect(second.taskPid(attempts[1]!.uid)).toBeDefined();
  return attempts[1]!;
}

const send = async (token: string, body: object): Promise<number> => {
  const response = await fetch(new URL(AGENT_PATHS.sync, server.url), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.arrayBuffer();
  return response.status;
};

describe.concurrent('silent beyond the attempt lease', () => {
  test('stopped: killed by the watchdog, run elsewhere, stale reports without effect', async () => {
    const { silent, other, stubborn } = pair('stopped');
    const done = gate(server, 'stopped');
    const file = path.join(server.root, 'stopped');
    const { job, attempt } = await server.running(stubborn(file, done.wait));
    const pid = await until('a pid', () => silent.taskPid(attempt.uid));
    const second = other();
    silent.process().send('SIGSTOP');
    await whenLost(job, attempt.uid, pid);
    await until('it runs elsewhere', async () => (await server.attempts(job))[1]?.startedAtMs);
    silent.process().send('SIGCONT');
    await until('it has forgotten the old one', () => silent.attemptFolders().length === 0);
    await expectOnlySecondCounts(job, attempt.uid, second);
    done.open();
    expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED', exitCode: 0 });
    expectNoOverlap(file);
  });

  test('cut off: a zombie whose reports are refused and whose processes are gone', async () => {
    const { silent, other, stubborn } = pair('zombie', { url: proxy.url });
    const done = gate(server, 'zombie');
    const file = path.join(server.root, 'zombie');
    const { job, attempt } = await server.running(stubborn(file, done.wait));
    const pid = await until('a pid', () => silent.taskPid(attempt.uid));
    const identity = (): { worker: string; token: string; starts: number } =>
      JSON.parse(readFileSync(path.join(silent.dataDir, 'worker.json'), 'utf8')) as never;
    const old = identity();
    const second = other();
    proxy.partition();
    await whenLost(job, attempt.uid, pid);
    await until('it runs elsewhere', async () => (await server.attempts(job))[1]?.startedAtMs);

    const claim = (as: typeof old, uid: string): object => ({
      ...{ worker: as.worker, bootId: 'x', start: as.starts + 1, seq: 1, epoch: 0, wait: false },
      observed: [{ uid, state: 'ENDED', cause: 'exited', exitCode: 0 }],
    });
    expect(await send(old.token, claim(old, attempt.uid))).toBe(401);
    proxy.heal();
    const back = await until('it has joined again', () => {
      const now = identity();
      return now.token !== old.token && now;
    });
    await until('it has forgotten the old one', () => silent.attemptFolders().length === 0);
    const running = await expectOnlySecondCounts(job, attempt.uid, second);
    // As itself, about another's attempt: heard, without effect.
    expect(await send(back.token, claim(back, running.uid))).toBe(200);
    await delay(500);
    expect((await expectOnlySecondCounts(job, attempt.uid, second)).state).toBe('RUNNING');
    done.open();
    expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED', exitCode: 0 });
    expectNoOverlap(file);
  });
});
