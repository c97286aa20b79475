/** The controller is away for two minutes: no work ends, and everything is adopted afterwards. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forever, gate, shell } from '../../support/jobs.ts';
import { isAlive } from '../../support/processes.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/wait.ts';

const SOAK = process.env['SOAK'] === '1';
/** In `make test` the same is scaled: 120 of 300 s become 12 of 30, four times the worker lease. */
const AWAY_MS = SOAK ? 120_000 : 12_000;
const SCALED = {
  DROVER_LEASES_WORKER_MS: '3000',
  DROVER_LEASES_ATTEMPT_MS: '30000',
  DROVER_LEASES_KILL_MARGIN_MS: '1500',
  DROVER_LEASES_LONG_POLL_MS: '1000',
};

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ env: SOAK ? {} : SCALED });
});
afterAll(() => server.close());

test(
  `away for ${AWAY_MS / 1000} s`,
  async () => {
    const agents = ['a', 'b'].map((name) => server.agent(name));
    await server.online(2);
    const pidOf = (uid: string): Promise<number> =>
      until('a pid', () => agents.map((agent) => agent.taskPid(uid)).find(Boolean));
    const [meanwhile, after] = [gate(server, 'meanwhile'), gate(server, 'after')];
    const long = await server.running(forever());
    const gang = await server.running(forever({ shape: { kind: 'gang', size: 2 } }));
    const exits5 = await server.running(shell(`${meanwhile.wait}; echo during; exit 5`));
    const exits6 = await server.running(shell(`${after.wait}; echo after; exit 6`));
    const pids: number[] = [];
    const members = await until('both members run', async () => {
      const all = await server.attempts(gang.job);
      return all.every(({ state }) => state === 'RUNNING') && all;
    });
    for (const { uid } of [long.attempt, exits6.attempt, ...members]) pids.push(await pidOf(uid));

    await server.kill();
    await delay(AWAY_MS / 2);
    meanwhile.open();
    // One agent is started anew meanwhile: it has nobody to ask, and must not touch what runs.
    await agents[0]!.kill();
    agents[0]!.start();
    await delay(AWAY_MS / 2);
    expect(pids.map(isAlive)).toEqual(pids.map(() => true));
    await server.start();
    await server.online(2);

    expect(await server.ended(exits5.job)).toMatchObject({ state: 'FAILED', exitCode: 5 });
    expect(await server.stdout(exits5.job)).toBe('during\n');
    after.open();
    expect(await server.ended(exits6.job)).toMatchObject({ state: 'FAILED', exitCode: 6 });
    expect(await server.stdout(exits6.job)).toBe('after\n');
    for (const { job, attempt } of [exits5, exits6]) {
      expect(await server.attempts(job)).toMatchObject([{ uid: attempt.uid, cause: 'exited' }]);
    }
    expect(await server.attempts(long.job)).toMatchObject([
      { uid: long.attempt.uid, state: 'RUNNING' },
    ]);
    expect((await server.attempts(gang.job)).map(({ uid }) => uid)).toEqual(
      members.map(({ uid }) => uid),
    );
    expect(isAlive(pids[0]!)).toBe(true);
  },
  AWAY_MS + 120_000,
);
