/** Whose output the spool sends, and until when. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Observation } from '../protocol/agent.ts';
import { spoolSource } from './outputs.ts';
import type { ProcessRuntime } from './runtimes/processRuntime.ts';

function machine() {
  const observations: Observation[] = [];
  const runtime = {
    list: () => observations.map((observation) => ({ observation })),
    hasFiles: (uid: string) => uid !== 'waits',
    outputFiles: (uid: string) => ({ stdout: `/d/${uid}/stdout`, stderr: `/d/${uid}/stderr` }),
  } as ProcessRuntime;
  return { observations, outputs: spoolSource(runtime) };
}

test('attempts on the machine, with where their bytes and offsets lie', () => {
  const { observations, outputs } = machine();
  observations.push({ uid: 'a', state: 'RUNNING' }, { uid: 'b', state: 'ENDED' });
  observations.push({ uid: 'waits', state: 'STARTING' });
  expect(outputs.list()).toEqual([
    {
      uid: 'a',
      stdoutPath: '/d/a/stdout',
      stderrPath: '/d/a/stderr',
      offsetsPath: '/d/a/sent-offsets',
      ended: false,
    },
    expect.objectContaining({ uid: 'b', ended: true }),
  ]);
});

test('one that was forgotten stays until all of it is sent', async () => {
  const { observations, outputs } = machine();
  observations.push({ uid: 'a', state: 'ENDED' });
  const sent = Promise.withResolvers<void>();
  const kept = outputs.keepUntil('a', () => sent.promise);
  expect(outputs.list().map(({ uid }) => uid)).toEqual(['a']);
  observations.pop();
  expect(outputs.list()).toMatchObject([{ uid: 'a', ended: true }]);
  sent.resolve();
  await kept;
  expect(outputs.list()).toEqual([]);
});

test('one whose sending was broken off is kept and tells so', async () => {
  const { outputs } = machine();
  const broken = outputs.keepUntil('a', () => Promise.reject(new Error('closing')));
  await expect(broken).rejects.toThrow('closing');
  expect(outputs.list()).toMatchObject([{ uid: 'a' }]);
});

test('metrics are sent beside the output, once there are any', async () => {
  const home = mkdtempSync(join(tmpdir(), 'drover-outputs-'));
  const observations: Observation[] = [{ uid: 'a', state: 'RUNNING' }];
  const outputs = spoolSource({
    list: () => observations.map((observation) => ({ observation })),
    hasFiles: () => true,
    outputFiles: () => ({ stdout: join(home, 'stdout'), stderr: join(home, 'stderr') }),
  } as unknown as ProcessRuntime);
  const kinds = () => outputs.list().map(({ metrics = false }) => metrics);
  expect([outputs.lookForMetrics('a'), kinds()]).toEqual([false, [false]]);
  writeFileSync(join(home, 'metrics.jsonl'), '');
  // Of an attempt that ends before anybody looked, too.
  observations[0] = { uid: 'a', state: 'ENDED' };
  expect(kinds()).toEqual([false, true]);
  const keys: string[] = [];
  await outputs.keepUntil('a', async (key) => void keys.push(key));
  expect(keys).toEqual(['a', 'a/metrics']);
  rmSync(home, { recursive: true });
});
