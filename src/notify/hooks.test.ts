/** Webhooks and Slack against real HTTP servers, well-behaved and not. */
import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { NoticeMessage } from '../model/noticeMessage.ts';
import { notifySettings } from '../model/notifySettings.ts';
import type { Resolve } from './address.ts';
import type { Channel } from './contract.ts';
import { openChannels } from './open.ts';

const KEY = 'a-key-of-sufficient-length';
const NOW_MS = 1_800_000_000_500;
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

type Answer = (...exchange: Parameters<RequestListener>) => unknown;

async function serve(answer: Answer): Promise<number> {
  const server = createServer((...exchange) => void answer(...exchange));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function channel(kind: 'webhook' | 'slack', url: string, more: object = {}): Channel {
  const { resolve, ...fields } = more as { resolve?: Resolve };
  const secret = kind === 'webhook' ? { secretVariable: 'HOOK_KEY' } : {};
  const one = { kind, urlVariable: 'HOOK_URL', ...secret, allowPrivate: true, ...fields };
  const settings = notifySettings.parse({ channels: { it: one } });
  const env = { HOOK_KEY: `${KEY}\n`, HOOK_URL: url };
  return openChannels(settings, { env, now: () => NOW_MS, resolve }).get('it')!;
}

const message: NoticeMessage = {
  ...{ id: 'n1', kind: 'failed', atMs: 1_800_000_000_000, cluster: 'lab', tenant: 'physics' },
  ...{ job: 'j1', subject: 'train <b> & co (j1) failed', lines: ['It ran 2h.', 'Next: --mem 8G.'] },
  ...{ facts: { name: 'train', exitCode: 3 }, receipt: { job: 'j1' } },
};
const never = new AbortController().signal;

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk as string;
  return text;
}

describe('a webhook', () => {
  test('is signed over time and body, and carries its id', async () => {
    const got: { body: string; headers: IncomingMessage['headers'] }[] = [];
    const port = await serve(async (request, response) => {
      got.push({ body: await bodyOf(request), headers: request.headers });
      response.end('thanks');
    });
    // The name exists nowhere: the connection goes to the address that was checked.
    const resolve: Resolve = async () => [{ address: '127.0.0.1', family: 4 }];
    const it = channel('webhook', `http://hooks.invalid:${port}/a?b=c`, { resolve });
    await it.check();
    await it.send(message, never);
    const { body, headers } = got[0]!;
    expect(JSON.parse(body)).toMatchObject({
      ...{ id: 'n1', kind: 'failed', at: '2027-01-15T08:00:00.000Z', tenant: 'physics', job: 'j1' },
      ...{
        facts: { exitCode: 3 },
        receipt: { job: 'j1' },
        lines: ['It ran 2h.', expect.any(String)],
      },
    });
    const digest = createHmac('sha256', KEY).update(`1800000000.${body}`).digest('hex');
    expect(headers).toMatchObject({
      'drover-notice': 'n1',
      'drover-signature': `t=1800000000,v1=${digest}`,
      host: `hooks.invalid:${port}`,
    });
  });

  test('fails where the receiver does', async () => {
    const port = await serve((_request, response) => response.writeHead(500).end());
    const it = channel('webhook', `http://127.0.0.1:${port}/`);
    await expect(it.send(message, never)).rejects.toThrow('the receiver answered 500');
    servers[0]!.close();
    servers[0]!.closeAllConnections();
    await expect(it.send(message, never)).rejects.toThrow('ECONNREFUSED');
  });

  test('follows no redirect', async () => {
    let inside = 0;
    const secret = await serve((_request, response) => (inside++, response.end()));
    const location = `http://127.0.0.1:${secret}/latest/meta-data/`;
    const port = await serve((_request, response) => response.writeHead(307, { location }).end());
    const it = channel('webhook', `http://127.0.0.1:${port}/`);
    await expect(it.send(message, never)).rejects.toThrow('answered 307; redirects are not');
    expect(inside).toBe(0);
  });

  test('reads little of an endless answer', async () => {
    const port = await serve((_request, response) => {
      const more = (): void => void response.write('x'.repeat(65_536), () => setImmediate(more));
      more();
    });
    await channel('webhook', `http://127.0.0.1:${port}/`).send(message, never);
  });

  test('goes nowhere private unless that is allowed, and never says its URL', async () => {
    let reached = 0;
    const port = await serve((_request, response) => (reached++, response.end()));
    const hosts = ['127.0.0.1', 'localhost', '2130706433', '[::1]', '169.254.169.254'];
    for (const host of hosts) {
      const it = channel('webhook', `http://${host}:${port}/T0KEN`, { allowPrivate: false });
      const error: unknown = await it.send(message, never).catch((thrown: unknown) => thrown);
      expect(String(error)).toContain('private network');
      expect(String(error)).not.toContain('T0KEN');
    }
    expect(reached).toBe(0);
    await expect(channel('webhook', 'file:///etc/passwd').send(message, never)).rejects.toThrow(
      'no http(s):// address',
    );
  });

  test('ends with its signal where nobody answers', async () => {
    const port = await serve(() => undefined);
    const abort = new AbortController();
    const sent = channel('webhook', `http://127.0.0.1:${port}/`).send(message, abort.signal);
    setTimeout(() => abort.abort(), 50);
    await expect(sent).rejects.toThrow('aborted');
  });

  test('says which secret it lacks', async () => {
    const one = { kind: 'webhook', url: 'https://example.org', secretFile: '/nowhere/key' };
    const settings = notifySettings.parse({ channels: { it: one } });
    const it = openChannels(settings, { env: {}, now: () => 0 }).get('it')!;
    await expect(it.check()).rejects.toThrow('the file /nowhere/key cannot be read');
  });
});

test('Slack gets text and blocks, with its three characters escaped', async () => {
  let body = '';
  const port = await serve(async (request, response) => {
    body = await bodyOf(request);
    response.end('ok');
  });
  await channel('slack', `http://127.0.0.1:${port}/services/T/B/X`).send(message, never);
  expect(JSON.parse(body)).toEqual({
    text: 'train &lt;b&gt; &amp; co (j1) failed',
    blocks: [
      {
        type: 'section',
        text: { type: 'mrkdwn', text: '*train &lt;b&gt; &amp; co (j1) failed*' },
      },
      { type: 'section', text: { type: 'mrkdwn', text: 'It ran 2h.\nNext: --mem 8G.' } },
      { type: 'context', elements: [{ type: 'mrkdwn', text: 'lab · failed · n1' }] },
    ],
  });
});
