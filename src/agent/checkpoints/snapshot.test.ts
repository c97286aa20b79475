/** What of a checkpoint directory counts: finished files, and never half of one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { startFakeBlobs, type FakeBlobs } from '../folders/fakeBlobs.ts';
import { NOTHING, type Record } from './record.ts';
import { takeSnapshot, type Snapshot } from './snapshot.ts';
import { listeners } from './writers.ts';

let folder: string;
let fake: FakeBlobs;
let record: Record;
beforeEach(async () => {
  folder = fs.mkdtempSync(join(tmpdir(), 'drover-checkpoint-'));
  fake = await startFakeBlobs();
  record = { manifest: NOTHING, known: {} };
});
afterEach(async () => {
  fs.rmSync(folder, { recursive: true });
  await fake.close();
});

/** Its content becomes what the next one compares with. */
async function snapshot(more: { pids?: number[]; unclean?: boolean } = {}): Promise<Snapshot> {
  const taken = await takeSnapshot({
    ...{ blobs: fake.options, folder, record, clock: systemClock },
    pids: () => more.pids ?? [],
    unclean: more.unclean ?? false,
    signal: new AbortController().signal,
  });
  record = { manifest: taken.manifest, known: taken.known };
  return taken;
}

const contents = ({ manifest }: Snapshot): { [path: string]: string } =>
  Object.fromEntries(
    manifest.files.map(({ path, hash }) => [path, String(fake.blobs.get(hash) ?? 'not stored')]),
  );

function write(path: string, text: string): void {
  fs.mkdirSync(join(folder, path, '..'), { recursive: true });
  fs.writeFileSync(join(folder, path), text);
}

/** Written elsewhere first, long enough ago that the clock of the disk has moved on. */
async function put(path: string, text: string): Promise<void> {
  write('.new', text);
  await new Promise((resolve) => setTimeout(resolve, 15));
  fs.renameSync(join(folder, '.new'), join(folder, path));
}

test('files, links and folders; not what is hidden or unfinished by its name', async () => {
  write('step-1/model', 'm');
  write('a.tmp', 'no');
  write('b.part', 'no');
  write('.hidden/c', 'no');
  write('half.partial/d', 'no');
  fs.mkdirSync(join(folder, 'empty'));
  fs.symlinkSync('step-1', join(folder, 'latest'));
  fs.symlinkSync('/etc', join(folder, 'outside'));
  const taken = await snapshot();
  expect(contents(taken)).toEqual({ 'step-1/model': 'm' });
  expect(taken.manifest.links).toEqual([{ path: 'latest', target: 'step-1' }]);
  expect(taken.manifest.folders).toEqual(['empty']);
});

test('what did not change is neither read nor sent again', async () => {
  write('large', 'x');
  const first = await snapshot();
  // A wrong note of what it holds would be found out by whoever reads it again.
  const known = record.known['large']!;
  record.known['large'] = { ...known, file: { ...known.file, hash: `sha256:${'0'.repeat(64)}` } };
  const second = await snapshot();
  expect(second.manifest.files[0]?.hash).toBe(`sha256:${'0'.repeat(64)}`);
  expect([first.manifest.files.length, fake.puts]).toEqual([1, 1]);
});

test('a file open for writing keeps its last version, and nothing goes meanwhile', async () => {
  write('state', 'old');
  write('before', 'b');
  await snapshot();
  const script = 'rm before; exec 5>state; printf half >&5; echo up; sleep 100';
  const child = spawn('sh', ['-c', script], { cwd: folder });
  await once(child.stdout, 'data');
  const taken = await snapshot({ pids: [child.pid!] });
  expect(taken.skipped).toEqual(['state']);
  expect(contents(taken)).toEqual({ state: 'old', before: 'b' });
  child.kill('SIGKILL');
  await once(child, 'exit');
  // Its writer was killed: the half it left shows no rename.
  expect(contents(await snapshot({ unclean: true }))).toEqual({ state: 'old', before: 'b' });
  await put('state', 'new');
  expect(contents(await snapshot({ unclean: true }))).toEqual({ state: 'new' });
});

test('after an unclean end a folder renamed whole counts, one written in place not', async () => {
  write('step-2.tmp/model', 'm');
  await new Promise((resolve) => setTimeout(resolve, 15));
  fs.renameSync(join(folder, 'step-2.tmp'), join(folder, 'step-2'));
  write('step-3/model', 'half');
  const taken = await snapshot({ unclean: true });
  expect(contents(taken)).toEqual({ 'step-2/model': 'm' });
  expect(taken.skipped).toEqual(['step-3/model']);
});

test('what is replaced or removed while it is sent is stored as it was or as it is', async () => {
  await put('state', 'one');
  let sent = 0;
  fake.onPut = () => {
    // What was read before is stored; the next one has what is there now.
    if (++sent === 1) fs.writeFileSync(join(folder, 'state'), 'two, in place');
  };
  expect(contents(await snapshot())).toEqual({ state: 'one' });
  expect(contents(await snapshot())).toEqual({ state: 'two, in place' });
  fake.onPut = () => fs.rmSync(join(folder, 'gone'), { force: true });
  write('gone', 'g');
  expect(contents(await snapshot())).toEqual({ state: 'two, in place' });
});

test('a command that saves all the time does not keep what it saved from counting', async () => {
  const script =
    'import os,time\nn=0\nwhile True:\n n+=1\n f=open("s.tmp","w"); f.write(str(n)); f.close()\n' +
    ' time.sleep(0.006); os.rename("s.tmp","s")\n if n==1: print("up",flush=True)';
  const child = spawn('python3', ['-c', script], { cwd: folder });
  await once(child.stdout, 'data');
  const seen: number[] = [];
  for (let i = 0; i < 3; i++) {
    seen.push(Number(contents(await snapshot({ pids: [child.pid!] }))['s']));
    // Longer than it takes to save once more.
    await delay(100);
  }
  child.kill('SIGKILL');
  expect(seen[0]).toBeGreaterThan(0);
  expect(seen[2]).toBeGreaterThan(seen[0]!);
});

test('a pipe in the place of a file is left alone', async () => {
  const made = spawn('mkfifo', [join(folder, 'pipe')]);
  await once(made, 'exit');
  write('file', 'f');
  expect(contents(await snapshot())).toEqual({ file: 'f' });
});

test('a signal is for those who catch it', async () => {
  const script = "trap 'echo caught' USR1; echo up; while :; do sleep 0.01; done";
  const child = spawn('sh', ['-c', script]);
  await once(child.stdout, 'data');
  const deaf = spawn('sleep', ['100']);
  expect(listeners([child.pid!, deaf.pid!, 999_999_999], 'SIGUSR1')).toEqual([child.pid]);
  for (const one of [child, deaf]) one.kill('SIGKILL');
});
