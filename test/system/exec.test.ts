/** Exec as a user meets it: exit codes, input, output, terminals. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { finish, gone, readUntil, tunnelWorld, type TunnelWorld } from './tunnelWorld.ts';

let world: TunnelWorld;
beforeAll(async () => {
  world = await tunnelWorld();
});
afterAll(() => world.close());

function megabytes(value: number): string {
  return (value / 1e6).toFixed(1);
}

describe('without a terminal', () => {
  test.each([0, 1, 42])('exit code %i arrives after the output', async (code) => {
    const command = ['sh', '-c', `echo out; echo err >&2; exit ${code}`];
    expect(await finish(await world.exec({ command }))).toEqual({
      stdout: 'out\n',
      stderr: 'err\n',
      code,
      signal: null,
    });
  });

  test('the command runs in the attempt: its directory, environment and cgroup', async () => {
    const command = ['sh', '-c', 'pwd; echo $DROVER_TASK $MINE; echo $$'];
    const { stdout } = await finish(await world.exec({ command, env: { MINE: 'yes' } }));
    const [cwd, variables, pid] = stdout.split('\n');
    expect([cwd, variables]).toEqual([world.folder, 'j1.0 yes']);
    expect(world.joined).toContain(Number(pid));
  });

  test.each([false, true])('no part of it runs before it joined (tty: %s)', async (tty) => {
    const file = join(world.folder, `joined-${tty}`);
    world.settings.join = (pid) => {
      const until = performance.now() + 100;
      while (performance.now() < until);
      writeFileSync(file, String(pid));
    };
    const result = await finish(
      await world.exec({ command: ['sh', '-c', `cat ${file}; echo :$$`], tty }),
    );
    world.settings.join = () => {};
    const [joined, pid] = result.stdout.trim().split(':');
    expect(joined).toBe(pid);
  });

  test('a job id means its first task', async () => {
    const { stdout } = await finish(await world.exec({ command: ['echo', 'hi'] }, 'j1'));
    expect(stdout).toBe('hi\n');
  });

  test('a command that does not exist ends with 127 and says so', async () => {
    const result = await finish(await world.exec({ command: ['no-such-command'] }));
    expect(result.code).toBe(127);
    expect(result.stderr).toContain('no-such-command: not found');
  });

  test('a signal is reported as one, and can be sent', async () => {
    const self = await finish(await world.exec({ command: ['sh', '-c', 'kill -9 $$'] }));
    expect(self).toMatchObject({ code: null, signal: 'SIGKILL' });
    const session = await world.exec({ command: ['sleep', '100'] });
    await session.signal('SIGTERM');
    expect(await finish(session)).toMatchObject({ code: null, signal: 'SIGTERM' });
  });

  test('a signal is not held up by input that nobody reads', async () => {
    const session = await world.exec({ command: ['sleep', '100'] });
    const result = finish(session);
    void session.write(Buffer.alloc(10_000_000));
    await new Promise((resolve) => setTimeout(resolve, 300));
    await session.signal('SIGINT');
    expect(await result).toMatchObject({ signal: 'SIGINT' });
  });

  test('stdin ends when the client says so', async () => {
    const session = await world.exec({ command: ['wc', '-c'] });
    const result = finish(session);
    await session.write(Buffer.from('12345'));
    await session.endInput();
    expect((await result).stdout.trim()).toBe('5');
  });

  test('the standard streams are pipes that scripts can open by name', async () => {
    const command = [
      'sh',
      '-c',
      'cat /dev/stdin; sleep 0.1; cat /dev/stdin; echo bad > /dev/stderr; test -t 0 || echo plain',
    ];
    const session = await world.exec({ command });
    const result = finish(session);
    await session.write(Buffer.from('in\n'));
    await session.endInput();
    expect(await result).toMatchObject({ stdout: 'in\nplain\n', stderr: 'bad\n', code: 0 });
  });

  test('input that the command will not read does not hold up its end', async () => {
    const session = await world.exec({ command: ['sh', '-c', 'head -c 3; exit 3'] });
    const result = finish(session);
    await session.write(Buffer.alloc(3_000_000, 'x'));
    expect(await result).toMatchObject({ stdout: 'xxx', code: 3 });
  });

  test('a child that holds the output open does not hold up the end, and is ended', async () => {
    const command = ['sh', '-c', 'sleep 100 & echo $!'];
    const result = await finish(await world.exec({ command }));
    expect(result.code).toBe(0);
    await gone(Number(result.stdout));
  });

  test('50 MB through cat arrive whole, in bounded memory', async () => {
    const session = await world.exec({ command: ['cat'] });
    const piece = randomBytes(1024 * 1024);
    const pieces = 50;
    const [sent, received] = [createHash('sha256'), createHash('sha256')];
    const before = process.memoryUsage().rss;
    const startedAt = performance.now();
    const writing = (async () => {
      for (let i = 0; i < pieces; i++) {
        piece.writeUInt32LE(i);
        sent.update(piece);
        await session.write(piece);
      }
      await session.endInput();
    })();
    let bytes = 0;
    let most = 0;
    for await (const output of session.output) {
      received.update(output.bytes);
      bytes += output.bytes.length;
      most = Math.max(most, process.memoryUsage.rss() - before);
    }
    await writing;
    const seconds = (performance.now() - startedAt) / 1000;
    console.log(
      `exec cat, there and back: ${megabytes(bytes / seconds)} MB/s each way, ` +
        `${megabytes(most)} MB more memory (client, gateway and agent in one process)`,
    );
    expect(bytes).toBe(pieces * piece.length);
    expect(received.digest('hex')).toBe(sent.digest('hex'));
    expect(most).toBeLessThan(150e6);
  });

  test('a client that stops reading stops the command, not the gateway', async () => {
    const file = join(world.folder, 'written');
    const command = ['sh', '-c', `while :; do head -c 1000000 /dev/zero; echo >> ${file}; done`];
    const session = await world.exec({ command });
    const output = session.output[Symbol.asyncIterator]();
    await output.next();
    const size = async (): Promise<number> => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      return existsSync(file) ? readFileSync(file).length : 0;
    };
    await size();
    const first = await size();
    expect(first).toBeLessThan(40);
    expect(await size()).toBe(first);
    session.close();
  });

  test('20 at once all move while each has more to say', async () => {
    const bytesEach = 4_000_000;
    const script = `echo ready; read go; exec head -c ${bytesEach} /dev/zero`;
    const sessions = await Promise.all(
      Array.from({ length: 20 }, () => world.exec({ command: ['sh', '-c', script] })),
    );
    const outputs = sessions.map((session) => session.output[Symbol.asyncIterator]());
    await Promise.all(outputs.map((output) => readUntil(output, 'ready\n')));
    await Promise.all(sessions.map((session) => session.write(Buffer.from('go\n'))));
    const progress = outputs.map(() => 0);
    const others: number[] = [];
    await Promise.all(
      outputs.map(async (output, index) => {
        for (let next = await output.next(); !next.done; next = await output.next()) {
          progress[index]! += next.value.bytes.length;
        }
        others.push(Math.min(...progress));
      }),
    );
    expect(progress.every((bytes) => bytes === bytesEach)).toBe(true);
    // When the first was done, the last was well under way.
    expect(others[0]).toBeGreaterThan(bytesEach / 10);
  });
});

describe('with a terminal', () => {
  const tty = { tty: true, cols: 100, rows: 30, env: { TERM: 'vt100' } };

  test('it is a terminal of the right size and kind', async () => {
    const command = ['sh', '-c', 'test -t 0 && test -t 1 && stty size; echo $TERM; exit 5'];
    const result = await finish(await world.exec({ ...tty, command }));
    expect(result).toMatchObject({ stdout: '30 100\r\nvt100\r\n', code: 5 });
  });

  test('a resize reaches the program', async () => {
    const command = [
      'sh',
      '-c',
      'trap "stty size; exit 0" WINCH; echo ready; while :; do sleep 0.05; done',
    ];
    const session = await world.exec({ ...tty, command });
    const output = session.output[Symbol.asyncIterator]();
    await readUntil(output, 'ready');
    await session.resize(132, 43);
    expect(await readUntil(output, '43 132')).toContain('43 132');
    await output.next();
    expect(await session.exit).toMatchObject({ code: 0 });
  });

  test('Ctrl-C is byte 3, and a shell lives through it', async () => {
    const session = await world.exec({ ...tty, command: ['bash', '--norc', '-i'] });
    const output = session.output[Symbol.asyncIterator]();
    await readUntil(output, '# ').catch(() => readUntil(output, '$ '));
    await session.write(Buffer.from('sleep 100\r'));
    await readUntil(output, 'sleep 100');
    await new Promise((resolve) => setTimeout(resolve, 200));
    await session.write(Uint8Array.of(3));
    await readUntil(output, '^C');
    await session.write(Buffer.from('echo code $?\rexit 9\r'));
    await readUntil(output, 'code 130');
    for (let next = await output.next(); !next.done;) next = await output.next();
    expect(await session.exit).toMatchObject({ code: 9 });
  });

  test('Ctrl-C ends a program that has no shell around it', async () => {
    const session = await world.exec({
      ...tty,
      command: ['sh', '-c', 'echo ready; exec sleep 100'],
    });
    const output = session.output[Symbol.asyncIterator]();
    await readUntil(output, 'ready');
    await session.write(Uint8Array.of(3));
    for (let next = await output.next(); !next.done;) next = await output.next();
    expect(await session.exit).toMatchObject({ code: null, signal: 'SIGINT' });
  });

  test('the last line is not lost when the client is slow', async () => {
    const session = await world.exec({ ...tty, command: ['seq', '1', '300000'] });
    const output = session.output[Symbol.asyncIterator]();
    let seen = Buffer.from((await output.next()).value!.bytes).toString();
    await new Promise((resolve) => setTimeout(resolve, 700));
    for (let next = await output.next(); !next.done; next = await output.next()) {
      seen += Buffer.from(next.value.bytes).toString();
    }
    const lines = seen.split('\r\n');
    expect([lines.length, lines.at(-2)]).toEqual([300_001, '300000']);
  });

  test('more input than the terminal holds waits until the program reads', async () => {
    const session = await world.exec({
      ...tty,
      command: ['sh', '-c', 'stty raw -echo; echo ready; sleep 0.5; head -c 200000 | sha256sum'],
    });
    const output = session.output[Symbol.asyncIterator]();
    await readUntil(output, 'ready');
    const input = randomBytes(200_000);
    await session.write(input);
    const seen = await readUntil(output, /[0-9a-f]{64}/);
    expect(seen).toContain(createHash('sha256').update(input).digest('hex'));
  });
});
