/** Who may connect: by address, and through proxies that are trusted or not. */
import type { IncomingMessage } from 'node:http';
import { connect, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { gateConnections } from '../../lib/tls/gate.ts';
import { startTestGateway } from '../testGateway.ts';
import { createAdmission } from './admission.ts';

const allow = ['10.0.0.0/8', '2001:db8::/32'];
const trustedProxies = ['192.0.2.1', '127.0.0.0/8'];

function request(peer: string, forwardedFor?: string): IncomingMessage {
  const headers = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor };
  return { socket: { remoteAddress: peer }, headers } as unknown as IncomingMessage;
}

test('without a list everybody may connect, and nothing a client says about itself counts', () => {
  const open = createAdmission({});
  expect([open.isOpen, open.admits('203.0.113.9')]).toEqual([true, true]);
  expect(open.callerOf(request('203.0.113.9', '10.0.0.1'))).toBe('203.0.113.9');
});

test('peers: the list, processes on this machine, and proxies that may speak for others', () => {
  const admission = createAdmission({ allow, trustedProxies });
  const admits = (peer: string): boolean => admission.admits(peer);
  const yes = ['10.1.2.3', '::ffff:10.1.2.3', '2001:db8::9', '127.0.0.1', '::1', '192.0.2.1'];
  const no = ['203.0.113.9', '::ffff:203.0.113.9', '2001:db9::1', ''];
  expect(yes.filter((peer) => !admits(peer))).toEqual([]);
  expect(no.filter((peer) => admits(peer))).toEqual([]);
});

test.each<[string, string, string | undefined, string, boolean]>([
  ['a caller of the list', '192.0.2.1', '10.0.0.1', '10.0.0.1', true],
  ['a caller of no list', '192.0.2.1', '203.0.113.9', '203.0.113.9', false],
  ['a claim left of a stranger', '192.0.2.1', '10.0.0.1, 203.0.113.9', '203.0.113.9', false],
  ['two proxies in a row', '192.0.2.1', '10.0.0.1, 192.0.2.1', '10.0.0.1', true],
  ['with ports', '192.0.2.1', '10.0.0.1:4711', '10.0.0.1', true],
  ['IPv6 with a port', '192.0.2.1', '[2001:db8::1]:4711', '2001:db8::1', true],
  ['nonsense', '192.0.2.1', 'unknown', 'unknown', false],
  ['an empty claim', '192.0.2.1', '', '', false],
  ['a proxy that says nothing', '192.0.2.1', undefined, '192.0.2.1', false],
  ['a process on this machine', '127.0.0.1', undefined, '127.0.0.1', true],
])('behind a proxy: %s', (_, peer, forwardedFor, caller, isAllowed) => {
  const admission = createAdmission({ allow, trustedProxies });
  const one = request(peer, forwardedFor);
  expect(admission.callerOf(one)).toBe(caller);
  const check = (): void => admission.check(one);
  if (isAllowed) expect(check).not.toThrow();
  else expect(check).toThrow(expect.objectContaining({ code: 'PERMISSION_DENIED' }));
});

test('who is turned away gets not one byte, and others are served', async () => {
  const server = createServer((socket) => socket.end('hello'));
  const refused: string[] = [];
  gateConnections(
    server,
    (peer) => !peer.endsWith('127.0.0.2'),
    (peer) => void refused.push(peer),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const from = (localAddress: string): Promise<string> =>
    new Promise((resolve) => {
      let text = '';
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      socket.on('data', (bytes) => (text += bytes.toString()));
      socket.on('error', () => undefined);
      socket.on('close', () => resolve(text));
    });
  expect([await from('127.0.0.1'), await from('127.0.0.2')]).toEqual(['hello', '']);
  expect(refused).toEqual(['127.0.0.2']);
  server.close();
});

test('a call that a proxy passes on is refused by its caller, an upgrade too', async () => {
  await using gateway = await startTestGateway(
    {},
    {
      allow,
      trustedProxies,
      upgrade: (_request, socket) => socket.end('HTTP/1.1 101 Yes\r\n\r\n'),
    },
  );
  const as = (caller: string, more = {}) =>
    gateway.call('GET', '/v1/jobs', { headers: { 'x-forwarded-for': caller, ...more } });
  expect((await as('10.0.0.1')).status).toBe(200);
  const denied = await as('203.0.113.9');
  expect([denied.status, denied.json.code]).toEqual([403, 'PERMISSION_DENIED']);
  expect(denied.json.hint).toContain('server.allow');
  expect(denied.headers.get('x-content-type-options')).toBe('nosniff');
  expect(await upgrade(gateway.url, '10.0.0.1')).toContain('101');
  expect(await upgrade(gateway.url, '203.0.113.9')).toContain('403 Forbidden');
});

function upgrade(url: string, caller: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(
    `GET /x HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
      `x-forwarded-for: ${caller}\r\n\r\n`,
  );
  return new Promise((resolve) => socket.once('data', (bytes) => resolve(bytes.toString())));
}
