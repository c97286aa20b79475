/** An agent killed, or stopped beyond the worker lease: its work goes on and is adopted. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forever, gate, shell } from '../../support/jobs.ts';
import { QUICK_SUSPECT } from '../../support/leases.ts';
import { isAlive, killPid } from '../../support/processes.ts';
import { startServer, type TestAgent, type TestServer } from '../../support/server.ts';
import { until } from '../../support/wait.ts';

let server: TestServer;
let agent: TestAgent;
beforeAll(async () => {
  server = await startServer({ env: QUICK_SUSPECT });
  agent = server.agent('a');
  await server.online(1);
});
afterAll(() => server.close());

const taskPid = (uid: string): Promise<number> => until('a pid', () => agent.taskPid(uid));

test('killed and started again: everything adopted, every exit code right', async () => {
  const [meanwhile, after] = [gate(server, 'meanwhile'), gate(server, 'after')];
  const exits3 = await server.running(shell(`${meanwhile.wait}; echo said; exit 3`));
  const exits0 = await server.running(shell(`${meanwhile.wait}; exit 0`));
  const killed = await server.running(forever());
  const exits7 = await server.running(shell(`${after.wait}; echo late; exit 7`));
  const pid = await taskPid(exits7.attempt.uid);
  const pidOfKilled = await taskPid(killed.attempt.uid);

  await agent.kill();
  meanwhile.open();
  killPid(pidOfKilled, 'SIGKILL');
  await until('its task is gone', () => !isAlive(pidOfKilled));
  await delay(500);
  agent.start();
  expect(await server.ended(exits3.job)).toMatchObject({ state: 'FAILED', exitCode: 3 });
  expect(await server.ended(exits0.job)).toMatchObject({ state: 'SUCCEEDED', exitCode: 0 });
  expect((await server.ended(killed.job)).state).toBe('FAILED');
  expect(await server.attempts(killed.job)).toMatchObject([
    { n: 1, cause: 'signalled', signal: 'SIGKILL' },
  ]);
  expect(isAlive(pid)).toBe(true);
  after.open();
  expect(await server.ended(exits7.job)).toMatchObject({ state: 'FAILED', exitCode: 7 });
  expect([await server.stdout(exits3.job), await server.stdout(exits7.job)]).toEqual([
    'said\n',
    'late\n',
  ]);
  for (const { job, attempt } of [exits3, exits0, exits7]) {
    expect(await server.attempts(job)).toMatchObject([{ uid: attempt.uid, cause: 'exited' }]);
  }
});

test('killed ten times while jobs start and end: each runs once', async () => {
  const jobs: string[] = [];
  const file = `${server.root}/ran`;
  for (let round = 0; round < 10; round++) {
    for (let n = 0; n < 3; n++) {
      jobs.push(await server.submit(shell(`echo ${round}.${n} >>${file}; echo out; exit ${n}`)));
    }
    await delay(Math.random() * 800);
    await agent.kill();
    agent.start();
  }
  for (const [i, job] of jobs.entries()) {
    const view = await server.ended(job);
    const attempts = await server.attempts(job);
    // One that never became a process may be tried again; one that did was adopted.
    expect(attempts.filter(({ cause }) => cause !== 'never-started')).toHaveLength(1);
    expect([view.exitCode, await server.stdout(job)]).toEqual([i % 3, 'out\n']);
  }
  const ran = readFileSync(file, 'utf8').trim().split('\n');
  expect(ran.toSorted()).toEqual(jobs.map((_, i) => `${Math.floor(i / 3)}.${i % 3}`));
});

test('stopped beyond the worker lease: suspect, no new work, then online again', async () => {
  await server.online(1);
  const { job, attempt } = await server.running(forever());
  const pid = await taskPid(attempt.uid);
  agent.process().send('SIGSTOP');
  const worker = await until('the worker is SUSPECT', async () =>
    (await server.client.listWorkers({})).items.find(({ state }) => state === 'SUSPECT'),
  );
  const waits = await server.submit(shell('echo hello'));
  await delay(1500);
  expect(await server.attempts(waits)).toEqual([]);
  expect((await server.client.getJob(waits)).state).toBe('PENDING');

  agent.process().send('SIGCONT');
  expect(await server.ended(waits)).toMatchObject({ state: 'SUCCEEDED', exitCode: 0 });
  const { items } = await server.client.listWorkers({});
  expect(items).toMatchObject([{ id: worker.id, state: 'ONLINE' }]);
  expect(await server.attempts(job)).toMatchObject([{ uid: attempt.uid, state: 'RUNNING' }]);
  expect(isAlive(pid)).toBe(true);
});
