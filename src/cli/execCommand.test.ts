/** What `drover exec` refuses before it opens a tunnel. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { capture } from './captured.ts';
import { addJob } from './fakeJobs.ts';
import { startFakeServer, type FakeServer } from './fakeServer.ts';

let fake: FakeServer;
beforeEach(async () => {
  fake = await startFakeServer();
  addJob(fake, { command: ['x'], shape: { kind: 'gang', size: 2 } });
});
afterEach(() => fake.close());

test.each([
  [['exec'], 'ID is missing'],
  [['exec', 'j1', 'ls', '-l'], 'unknown option -l'],
  [['exec', 'j1', 'ls', 'x'], 'try: drover exec j1 -- ls x'],
  [['exec', 'j1', '-t', '-T'], '-t and -T exclude each other'],
  [['exec', 'j1', '--json'], 'exec has no JSON form'],
  [['exec', 'j1.0', '--task', '1'], 'j1.0 names a task already'],
  [['exec', 'j1', '--', 'ls'], 'try: drover exec j1 --task N -- COMMAND'],
  [['exec', 'j9', '--', 'ls'], 'error NOT_FOUND'],
])('bad input %j', async (args, expected) => {
  const result = await capture(args, { url: fake.url });
  expect(result.code).toBe(125);
  expect(result.stderr).toContain(expected);
});
