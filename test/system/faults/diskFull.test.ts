/** A full disk, on either side: clear errors, nothing acknowledged that is not kept, recovery. */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compareWithAcknowledged, forever, shell, waiting } from '../../support/jobs.ts';
import { isAlive } from '../../support/processes.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { mountSmallDisk, type SmallDisk } from '../../support/smallDisk.ts';
import { post } from '../../support/submitters.ts';
import { until } from '../../support/wait.ts';

let server: TestServer;
let disk: SmallDisk;

describe('of the controller', () => {
  beforeAll(async () => {
    disk = mountSmallDisk(24);
    server = await startServer({ dataDir: path.join(disk.folder, 'data') });
    server.agent('a');
    await server.online(1);
  });
  afterAll(() => server.close().finally(() => disk.remove()));

  test('no false 2xx; with space again everything acknowledged is there', async () => {
    const ticks = 'i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.05; done';
    const { job, attempt } = await server.running(shell(ticks));
    const acknowledged = new Map<string, string>();
    const refused = new Set<string>();
    disk.fill();
    for (let n = 0; n < 400; n++) {
      const key = `full-${n}`;
      const reply = await post(server.url, server.token, key, bodyOf(key));
      if (reply?.status === 201) acknowledged.set(key, idOf(reply.text));
      else refused.add(key);
      // A problem that says so, or a connection that ends because the process did.
      if (reply !== null && reply.status !== 201) {
        expect([reply.status, JSON.parse(reply.text)]).toMatchObject([
          503,
          { code: 'UNAVAILABLE' },
        ]);
      }
      if (refused.size > 20) break;
    }
    expect(refused.size).toBeGreaterThan(20);
    await expect(stillFull()).rejects.toThrow(/disk|full|space/i);

    disk.empty();
    await restart();
    expect(await compareWithAcknowledged(server, acknowledged, 'full-')).toEqual([]);
    for (const key of refused) {
      const reply = await post(server.url, server.token, key, bodyOf(key));
      expect(reply?.status).toBe(201);
      acknowledged.set(key, idOf(reply!.text));
    }
    expect(await compareWithAcknowledged(server, acknowledged, 'full-')).toEqual([]);
    expect(await server.ended(await server.submit(shell('exit 3')))).toMatchObject({ exitCode: 3 });
    expect(await server.attempts(job)).toMatchObject([{ uid: attempt.uid, state: 'RUNNING' }]);
    await everyTickOnce(job);
  });

  const bodyOf = (key: string): string =>
    JSON.stringify({ name: key, labels: { padding: 'x'.repeat(250) }, ...waiting() });
  const idOf = (text: string): string => (JSON.parse(text) as { data: { id: string } }).data.id;

  /** It has ended, as it must; a start on the full disk says what is wrong. */
  async function stillFull(): Promise<void> {
    await until('it has ended', () => server.process().end());
    expect(server.process().end()?.code).not.toBe(0);
    await server.start();
  }

  async function restart(): Promise<void> {
    if (server.process().end()) await server.start();
    await server.online(1);
  }

  async function everyTickOnce(job: string): Promise<void> {
    const wanted = Number((await server.stdoutSoFar(job)).trim().split(' ').at(-1)) + 40;
    const lines = await until('its output comes in again', async () => {
      const all = (await server.stdoutSoFar(job)).trim().split('\n');
      return all.length >= wanted && all;
    });
    expect(lines).toEqual(lines.map((_, i) => `tick ${i + 1}`));
  }
});

describe('of an agent', () => {
  beforeAll(async () => {
    disk = mountSmallDisk(8);
    server = await startServer();
    // Work shall meet the full disk; by itself such a machine takes none.
    const env = { DROVER_AGENT_HEALTH: '{warnOnly: [disk]}' };
    server.agent('a', { dataDir: path.join(disk.folder, 'agent'), env });
    await server.online(1);
  });
  afterAll(() => server.close().finally(() => disk.remove()));

  test('what runs goes on, what cannot start is tried again at no cost', async () => {
    const { job, attempt } = await server.running(forever());
    const counts =
      'i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i; sleep 0.01; done; exit 9';
    const writes = await server.running(shell(counts));
    disk.fill();
    const starts = await server.submit(shell('echo started'));
    const first = await until('it was tried', async () => (await server.attempts(starts))[0]);
    await until('that ended', async () => (await server.attempts(starts))[0]?.endedAtMs);
    expect((await server.attempts(starts))[0]).toMatchObject({
      uid: first.uid,
      cause: 'never-started',
      message: expect.stringMatching(/no space|disk/i) as string,
    });
    expect((await server.client.getJob(starts)).state).toBe('PENDING');
    await delay(1000);
    disk.empty();

    expect(await server.ended(starts, 90_000)).toMatchObject({ state: 'SUCCEEDED', exitCode: 0 });
    expect(await server.stdout(starts)).toBe('started\n');
    const [task] = (await server.client.listTasks(starts, {})).items;
    expect(task).toMatchObject({ failures: 0 });
    expect(await server.ended(writes.job)).toMatchObject({ exitCode: 9 });
    expectOrdered(await server.stdout(writes.job));
    expect(await server.attempts(job)).toMatchObject([{ uid: attempt.uid, state: 'RUNNING' }]);
  });

  test('a task that fills the disk hurts only itself', async () => {
    const { job, attempt } = await server.running(forever());
    const greedy = await server.submit(shell('yes 0123456789 | head -c 30000000; exit 6'));
    expect(await server.ended(greedy)).toMatchObject({ state: 'FAILED', exitCode: 6 });
    const output = await server.stdout(greedy);
    expect(output.length).toBeGreaterThan(1_000_000);
    expect(output.replaceAll('0123456789\n', '').length).toBeLessThan(11);
    const next = await server.submit(shell('echo next'));
    expect(await server.ended(next, 90_000)).toMatchObject({ state: 'SUCCEEDED' });
    expect(await server.stdout(next)).toBe('next\n');
    expect(await server.attempts(job)).toMatchObject([{ uid: attempt.uid, state: 'RUNNING' }]);
    expect(isAlive(server.process().pid)).toBe(true);
  });

  /** Lines may be missing where the disk was full; none is out of order or torn. */
  function expectOrdered(output: string): void {
    const lines = output.trim().split('\n');
    const numbers = lines.map((line) => Number(/^line (\d+)$/.exec(line)?.[1]));
    expect(numbers.length).toBeGreaterThan(10);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  }
});
