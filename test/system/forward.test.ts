/** Port-forward as a user meets it: bytes both ways, half-close, many at once, clear refusals. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { insideTask, type InsideTask } from '../../src/cli/insideTask.ts';
import { parseForward } from '../../src/cli/forward.ts';
import { TASK, TOKEN, tunnelWorld, type TunnelWorld } from './tunnelWorld.ts';

let world: TunnelWorld;
let inside: InsideTask;
const closing: Server[] = [];
beforeAll(async () => {
  world = await tunnelWorld();
  inside = enter(TASK);
});
afterAll(async () => {
  inside.close('the test is over');
  for (const server of closing) server.close();
  await world.close();
});

function enter(task: string, token = TOKEN): InsideTask {
  return insideTask({ url: world.url, token, tls: {}, source: 'test' }, task);
}

async function serve(
  serveOne: (socket: Socket) => void,
  place: number | string = 0,
): Promise<{ server: Server; port: number }> {
  const server = createServer({ allowHalfOpen: true }, serveOne);
  server.listen(typeof place === 'number' ? { port: place, host: '127.0.0.1' } : { path: place });
  await once(server, 'listening');
  closing.push(server);
  return { server, port: (server.address() as AddressInfo | null)?.port ?? 0 };
}

const echo = (socket: Socket): void => void socket.pipe(socket);

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

describe('forward', () => {
  test('bytes both ways, and each way ends by itself', async () => {
    // Answers only once it has seen the end of what it was asked.
    const { port } = await serve((socket) => {
      void textOf(socket).then((text) => socket.end(`you said ${text}`));
    });
    const connection = await inside.connect({ kind: 'tcp', port });
    connection.write('hel');
    connection.end('lo');
    expect(await textOf(connection)).toBe('you said hello');
  });

  test('a server that speaks and ends first still hears what we say', async () => {
    const heard = Promise.withResolvers<string>();
    const { port } = await serve((socket) => {
      socket.end('welcome');
      textOf(socket).then(heard.resolve, heard.reject);
    });
    const connection = await inside.connect({ kind: 'tcp', port });
    expect(await textOf(connection)).toBe('welcome');
    connection.end('thanks');
    expect(await heard.promise).toBe('thanks');
  });

  test('a hundred connections at once over one tunnel, each with its own bytes', async () => {
    const { port } = await serve(echo);
    const before = world.orders.length;
    const sums = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const bytes = randomBytes(50_000);
        const connection = await inside.connect({ kind: 'tcp', port });
        connection.end(bytes);
        const received = createHash('sha256');
        for await (const piece of connection) received.update(piece as Buffer);
        return received.digest('hex') === createHash('sha256').update(bytes).digest('hex');
      }),
    );
    expect(sums).toEqual(Array.from({ length: 100 }, () => true));
    expect(world.orders.length - before).toBeLessThan(5);
  });

  test('a reader that stalls stalls its writer, and nobody else', async () => {
    let written = 0;
    const { port } = await serve((socket) => {
      const piece = Buffer.alloc(64 * 1024);
      const more = (): void => {
        while (written < 200_000_000 && socket.write(piece)) written += piece.length;
      };
      socket.on('drain', more).on('error', () => {});
      more();
    });
    const stalled = await inside.connect({ kind: 'tcp', port });
    stalled.once('data', () => stalled.pause());
    await new Promise((resolve) => setTimeout(resolve, 500));
    const held = written;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(written).toBe(held);
    expect(held).toBeLessThan(20_000_000);
    const other = await serve(echo);
    const connection = await inside.connect({ kind: 'tcp', port: other.port });
    connection.end('still here');
    expect(await textOf(connection)).toBe('still here');
    stalled.destroy();
  });

  test('a Unix socket in the directory of the task', async () => {
    await serve(echo, join(world.folder, 'app.sock'));
    const connection = await inside.connect({ kind: 'unix', socket: 'app.sock' });
    connection.end('by name');
    expect(await textOf(connection)).toBe('by name');
  });

  test('nothing listens: it says so, and names the place', async () => {
    const { server, port } = await serve(echo);
    server.close();
    const refused = await inside.connect({ kind: 'tcp', port });
    await expect(textOf(refused)).rejects.toThrow(
      `nothing listens on port ${port} of the task's machine`,
    );
    const absent = await inside.connect({ kind: 'unix', socket: 'no.sock' });
    await expect(textOf(absent)).rejects.toThrow('nothing listens on');
  });

  test('a server that breaks off breaks off here', async () => {
    const { port } = await serve((socket) => void setTimeout(() => socket.resetAndDestroy(), 20));
    await expect(textOf(await inside.connect({ kind: 'tcp', port }))).rejects.toThrow(/./);
  });

  test('the end of the attempt ends its connections', async () => {
    const { port } = await serve(echo);
    const connection = await inside.connect({ kind: 'tcp', port });
    connection.write('x');
    await once(connection, 'data');
    world.dialer.endAttempt('uid-1');
    await expect(textOf(connection)).rejects.toThrow('attempt uid-1 ended');
  });

  test('a task that is not here, a wrong token and a token without the scope', async () => {
    const elsewhere = enter('j2.0');
    await expect(textOf(await elsewhere.connect({ kind: 'tcp', port: 1 }))).rejects.toThrow(
      'does not run on this machine now',
    );
    elsewhere.close('over');
    await expect(enter(TASK, 'wrong').open({ kind: 'ps' })).rejects.toThrow('unknown, expired');
    world.settings.scopes = ['jobs:read'];
    await expect(enter(TASK).open({ kind: 'ps' })).rejects.toThrow('jobs:manage');
    world.settings.scopes = ['jobs:manage'];
  });

  test('a request that makes no sense is refused by name', async () => {
    const wrong = await inside.connect({ kind: 'tcp', port: 70_000 });
    await expect(textOf(wrong)).rejects.toThrow(/port .*65535/);
  });
});

test('who looked inside is recorded once for many connections, else refused', async () => {
  const { port } = await serve(echo);
  for (let i = 0; i < 3; i++) {
    const connection = await inside.connect({ kind: 'tcp', port });
    connection.end('x');
    await textOf(connection);
  }
  const rows = world.accesses.filter(({ details }) => details['port'] === port);
  expect(rows).toEqual([
    expect.objectContaining({ kind: 'tcp', task: TASK, attempt: 'uid-1', details: { port } }),
  ]);
  expect(rows[0]!.principal).toMatchObject({ user: 'root', tenant: 'default' });
  const audited = world.settings.audited;
  world.settings.audited = () => Promise.reject(new Error('the disk is full'));
  const { port: other } = await serve(echo);
  await expect(textOf(await inside.connect({ kind: 'tcp', port: other }))).rejects.toThrow(
    'inside Drover',
  );
  world.settings.audited = audited;
});

test('LOCAL and REMOTE as people write them', () => {
  expect(parseForward('6006')).toEqual({ localPort: 6006, remote: { kind: 'tcp', port: 6006 } });
  expect(parseForward('0:80')).toEqual({ localPort: 0, remote: { kind: 'tcp', port: 80 } });
  expect(parseForward('8080:run/a.sock')).toEqual({
    localPort: 8080,
    remote: { kind: 'unix', socket: 'run/a.sock' },
  });
  for (const wrong of ['', 'x', '80:', '80:0', '70000', '80:70000', 'x:80']) {
    expect(() => parseForward(wrong), wrong).toThrow();
  }
});

test('a client that connects and leaves', async () => {
  const { server, port } = await serve(echo);
  const left = once(server, 'connection').then(([socket]) => once(socket as Socket, 'close'));
  const connection = await inside.connect({ kind: 'tcp', port });
  connection.on('error', () => {});
  const local = createServer((socket) => socket.pipe(connection).pipe(socket));
  local.listen(0, '127.0.0.1');
  await once(local, 'listening');
  closing.push(local);
  const client = connect((local.address() as AddressInfo).port, '127.0.0.1');
  client.write('hello');
  await once(client, 'data');
  client.destroy();
  await left;
});
