/** What jobs leave is kept before their end is told: listed, fetched, refused with a reason. */
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shell } from '../../support/jobs.ts';
import { DROVER } from '../../support/processes.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/wait.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ env: { DROVER_BLOBS_MAX_BLOB_BYTES: '1000000' } });
  server.agent('one');
  await server.online(1);
});
afterAll(() => server.close());

async function drover(...args: string[]) {
  const env = { PATH: process.env['PATH'], DROVER_URL: server.url, DROVER_TOKEN: server.token };
  return promisify(execFile)(DROVER, args, { env: { ...env, HOME: server.root } });
}

test('the result directory and the outputs are listed, fetched and whole', async () => {
  const job = await server.submit(
    shell(
      'mkdir -p "$DROVER_RESULT_DIR/plots/empty" out/deep; echo 1 >"$DROVER_RESULT_DIR/a.txt"; ' +
        'printf "#!/bin/sh\\n" >out/run.sh; chmod +x out/run.sh; ln -s run.sh out/latest; ' +
        'echo x >out/deep/x.log; echo y >out/deep/y.dat; echo no >other; echo mine >a.txt; ' +
        'ln -s /etc/passwd "$DROVER_RESULT_DIR/outside"',
      { rules: { outputs: ['out/**/*.log', './out/run.sh', 'out/latest', 'a.txt', 'gone/*'] } },
    ),
  );
  expect(await server.ended(job)).toMatchObject({
    state: 'SUCCEEDED',
    reason: 'exit code 0: not kept with its result: outside is a link that leads out of it',
  });
  const result = await server.client.getResult(job);
  expect(result.files.map(({ path: name, size, executable }) => [name, size, executable])).toEqual([
    ['a.txt', 2, false],
    ['out/deep/x.log', 2, false],
    ['out/run.sh', 10, true],
  ]);
  expect(result.links).toEqual([{ path: 'out/latest', target: 'run.sh' }]);
  const target = path.join(server.root, 'fetched');
  const { stdout } = await drover('result', job);
  expect(stdout).toMatch(/SIZE +PATH +HASH\n.*a\.txt/);
  await drover('result', job, '-o', target);
  // Once more over what is there.
  await drover('result', `${job}.0`, '-o', target);
  expect(readFileSync(path.join(target, 'a.txt'), 'utf8')).toBe('1\n');
  expect(readFileSync(path.join(target, 'out/latest'), 'utf8')).toBe('#!/bin/sh\n');
  expect(statSync(path.join(target, 'out/run.sh')).mode & 0o111).not.toBe(0);
  expect(readdirSync(path.join(target, 'plots'))).toEqual(['empty']);
  expect(readdirSync(target).toSorted()).toEqual(['a.txt', 'out', 'plots']);
});

test('of an array each task has its own; none is said, and what is no task', async () => {
  const job = await server.submit(
    shell('[ $DROVER_ARRAY_INDEX = 5 ] || echo $DROVER_ARRAY_INDEX >"$DROVER_RESULT_DIR/index"', {
      shape: { kind: 'array', indices: [5, 7] },
    }),
  );
  await server.ended(job);
  expect(await server.client.getResult(job, 7)).toMatchObject({ task: `${job}.7`, bytes: 2 });
  await expect(server.client.getResult(job)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await expect(drover('result', job, '--task', '8')).rejects.toMatchObject({
    stderr: expect.stringContaining(`task ${job}.8 has left no result`),
  });
});

test('what is too large fails the job with the reason; a failed one keeps its own', async () => {
  const large = await server.submit(shell('head -c 2000000 /dev/zero >"$DROVER_RESULT_DIR/big"'));
  const failed = await server.submit(shell('echo why >"$DROVER_RESULT_DIR/trace"; exit 3'));
  expect(await server.ended(large)).toMatchObject({
    state: 'FAILED',
    reason: expect.stringMatching(
      /^exit code 0: its result could not be kept: A blob may have 1000000 bytes, not 2000000/,
    ),
  });
  expect(await server.ended(failed)).toMatchObject({ state: 'FAILED', exitCode: 3 });
  expect((await server.client.getResult(failed)).files).toMatchObject([{ path: 'trace' }]);
});

test('an end waits for a server that is away, and its result comes with it', async () => {
  const { job } = await server.running(shell('sleep 1; echo kept >"$DROVER_RESULT_DIR/kept"'));
  await server.kill();
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await server.start();
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
  const names = await until('its result', async () => (await server.client.getResult(job)).files);
  expect(names).toMatchObject([{ path: 'kept', size: 5 }]);
});

test('a failure can be held for a look: entered, and let go with its own end', async () => {
  const job = await server.submit(
    shell('echo evidence >left; exit 3', { rules: { keepOnFailureMs: 600_000 }, retries: 2 }),
  );
  const kept = await until('it is kept', async () =>
    (await server.attempts(job)).find(({ message }) => message.includes('kept until')),
  );
  expect(kept).toMatchObject({ state: 'RUNNING', n: 1 });
  expect((await drover('job', job)).stdout).toMatch(
    /kept +\S+ failed with exit code 3; kept until/,
  );
  expect((await drover('exec', job, '--', 'cat', 'left')).stdout).toBe('evidence\n');
  await drover('cancel', job);
  expect(await server.ended(job)).toMatchObject({
    ...{ state: 'FAILED', exitCode: 3, reason: 'exit code 3' },
  });
  expect(await server.attempts(job)).toMatchObject([{ cause: 'exited', message: '' }]);
});
