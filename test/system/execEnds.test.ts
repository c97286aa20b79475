/** How an exec session ends other than by the command: the client leaves, or is refused. */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectExec, execUrl } from '../../src/protocol/tunnel/execClient.ts';
import { finish, gone, readUntil, TOKEN, tunnelWorld, type TunnelWorld } from './tunnelWorld.ts';

let world: TunnelWorld;
beforeAll(async () => {
  world = await tunnelWorld();
});
afterAll(() => world.close());

describe('leaving', () => {
  test.each([false, true])('ends the command and its children (tty: %s)', async (tty) => {
    const command = ['bash', '-c', 'set -m; nohup sleep 100 & echo pids $$ $!; wait'];
    const session = await world.exec({ command, tty });
    const output = session.output[Symbol.asyncIterator]();
    const seen = await readUntil(output, /pids \d+ \d+\r?\n/);
    const pids = /pids (\d+) (\d+)/.exec(seen)!.slice(1).map(Number);
    for (const pid of pids) expect(existsSync(`/proc/${pid}`)).toBe(true);
    session.close();
    for (const pid of pids) await gone(pid);
  });

  test('ends a command that does not read its input', async () => {
    const session = await world.exec({ command: ['sh', '-c', 'echo $$; exec sleep 100'] });
    const output = session.output[Symbol.asyncIterator]();
    const pid = Number(await readUntil(output, '\n'));
    void session.write(Buffer.alloc(10_000_000));
    await new Promise((resolve) => setTimeout(resolve, 200));
    session.close();
    await gone(pid);
  });

  test('the end of the attempt ends its sessions with a reason', async () => {
    const session = await world.exec({ command: ['sleep', '100'] });
    const result = finish(session);
    setTimeout(() => world.dialer.endAttempt('uid-1'), 300);
    await expect(result).rejects.toMatchObject({ message: 'attempt uid-1 ended' });
  });
});

describe('bad input', () => {
  test('a task that runs elsewhere, or nowhere, is a clear error', async () => {
    const elsewhere = finish(await world.exec({ command: ['true'] }, 'j2.0'));
    await expect(elsewhere).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'attempt uid-of-another-machine does not run on this machine now',
    });
    const nowhere = finish(await world.exec({ command: ['true'] }, 'x.0'));
    await expect(nowhere).rejects.toMatchObject({ code: 'NOT_FOUND', message: 'no task x.0' });
  });

  test.each([
    [{ command: [] }, 'command'],
    [{ command: ['a\0b'] }, 'command.0 contains a zero byte'],
    [{ command: ['true'], cols: -1 }, 'cols'],
    [{ command: ['true'], extra: 1 }, 'Unrecognized key'],
  ])('a start message of %j is refused', async (start, message) => {
    const session = finish(await world.exec(start));
    await expect(session).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(session).rejects.toThrow(message);
  });

  test('wrong token 401, missing scope 403, unknown path 404, each with its code', async () => {
    const start = { command: ['true'], tty: false };
    const url = execUrl(world.url, 'j1');
    await expect(connectExec({ url, token: 'wrong', start })).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
      message: 'the token is unknown, expired or revoked',
    });
    world.settings.scopes = ['jobs:read'];
    await expect(connectExec({ url, token: TOKEN, start })).rejects.toMatchObject({
      code: 'PERMISSION_DENIED',
      message: 'the token lacks the scope jobs:manage',
    });
    world.settings.scopes = ['jobs:manage'];
    const other = connectExec({ url: `${world.url}/v1/nothing`, token: TOKEN, start });
    await expect(other).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('a server that is not there is said to be so', async () => {
    const start = { command: ['true'], tty: false };
    const nobody = connectExec({ url: 'http://127.0.0.1:1/', token: TOKEN, start });
    await expect(nobody).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await expect(nobody).rejects.toThrow('cannot connect to http://127.0.0.1:1/');
  });
});
