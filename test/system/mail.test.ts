/** E-mail through a real mail server: STARTTLS, a password, and what must be refused. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { NoticeMessage } from '../../src/model/noticeMessage.ts';
import { notifySettings } from '../../src/model/notifySettings.ts';
import type { Channel } from '../../src/notify/contract.ts';
import { openChannels } from '../../src/notify/open.ts';
import { createAuthority } from '../support/certificates.ts';
import { ROOT } from '../support/journey.ts';

interface Mail {
  from: string;
  to: string[];
  text: string;
  tls: boolean;
  user: string | null;
}

const folder = mkdtempSync(path.join(tmpdir(), 'drover-mail-'));
const file = (name: string): string => path.join(folder, name);
const python = path.join(ROOT, '.cache/python/mail/bin/python');
beforeAll(() => {
  if (!existsSync(python)) throw new Error('aiosmtpd is not installed: make python-packages');
  const authority = createAuthority('mail authority');
  const { cert, key } = authority.issue('localhost');
  const files = { 'ca.pem': authority.cert, 'cert.pem': cert, 'key.pem': key };
  for (const [name, text] of Object.entries(files)) writeFileSync(file(name), text);
  writeFileSync(file('password'), 'correct-horse\n');
  writeFileSync(file('wrong'), 'battery-staple\n');
});
afterAll(() => rmSync(folder, { recursive: true }));

let child: ChildProcess | undefined;
afterEach(async () => {
  if (!child) return;
  child.stdin!.end();
  if (child.exitCode === null) await once(child, 'exit');
  child = undefined;
});

async function serve(mode: 'starttls' | 'plain'): Promise<{ port: number; mails: Mail[] }> {
  const script = path.join(ROOT, 'test/support/mailServer.py');
  child = spawn(python, ['-W', 'ignore', script, mode, file('cert.pem'), file('key.pem')], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const lines = createInterface({ input: child.stdout! });
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('no mail server')));
  ended.catch(() => undefined);
  const [first] = (await Promise.race([once(lines, 'line'), ended])) as [string];
  const mails: Mail[] = [];
  lines.on('line', (line) => mails.push(JSON.parse(line) as Mail));
  return { port: (JSON.parse(first) as { port: number }).port, mails };
}

function channel(port: number, more: object = {}): Channel {
  const one = {
    ...{ kind: 'email', host: 'localhost', port, from: 'drover@lab.org', to: ['ada@lab.org'] },
    ...{ user: 'drover', passwordFile: file('password'), caFile: file('ca.pem') },
    allowPrivate: true,
    ...more,
  };
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
  const settings = notifySettings.parse({ channels: { mail: one } });
  return openChannels(settings, { env: {}, now: () => 0, resolve }).get('mail')!;
}

const message: NoticeMessage = {
  ...{ id: 'n7', kind: 'done', atMs: 1_800_000_000_000, cluster: 'lab', tenant: 't', job: 'j1' },
  subject: 'Überlänge \r\nBcc: eve@evil.org and more words than fit into one line of a header',
  ...{ lines: ['It ran 2h.', '.', 'Nächster Schritt: drover result j1'], facts: {}, receipt: null },
};
const never = new AbortController().signal;

/** As a mail program reads it. */
function read(text: string): { headers: string; body: string } {
  const at = text.indexOf('\r\n\r\n');
  const headers = text.slice(0, at).replaceAll(/\r\n[ \t]/g, '');
  return { headers, body: Buffer.from(text.slice(at), 'base64').toString() };
}

test('over STARTTLS with a password; nothing in it becomes a header', async () => {
  const { port, mails } = await serve('starttls');
  await channel(port, { to: ['ada@lab.org', 'bob@lab.org'] }).send(message, never);
  await expect.poll(() => mails.length).toBe(1);
  const [mail] = mails;
  expect(mail).toMatchObject({ from: 'drover@lab.org', to: ['ada@lab.org', 'bob@lab.org'] });
  expect(mail).toMatchObject({ tls: true, user: 'drover' });
  const { headers, body } = read(mail!.text);
  expect(headers).toContain('Message-ID: <n7@drover.invalid>');
  expect(headers).not.toMatch(/^Bcc/m);
  const words = [...headers.matchAll(/=\?UTF-8\?B\?([^?]+)\?=/g)];
  const subject = words.map(([, word]) => Buffer.from(word!, 'base64').toString()).join('');
  expect(subject).toBe(`[lab] ${message.subject}`);
  expect(body).toContain('It ran 2h.\r\n.\r\nNächster Schritt: drover result j1\r\n');
});

test('a wrong password, a stranger’s certificate and loopback are refused', async () => {
  const { port, mails } = await serve('starttls');
  const wrong = channel(port, { passwordFile: file('wrong') });
  await expect(wrong.send(message, never)).rejects.toThrow('answered AUTH with: 535');
  const stranger = channel(port, { caFile: '' });
  await expect(stranger.send(message, never)).rejects.toThrow(/certificate/);
  const loopback = channel(port, { allowPrivate: false });
  await expect(loopback.send(message, never)).rejects.toThrow('private network');
  expect(mails).toEqual([]);
});

test('without TLS only where that is said', async () => {
  const { port, mails } = await serve('plain');
  await expect(channel(port).send(message, never)).rejects.toThrow('has no STARTTLS');
  await channel(port, { tls: 'none', user: '', passwordFile: '' }).send(message, never);
  await expect.poll(() => mails.length).toBe(1);
  expect(mails[0]).toMatchObject({ tls: false, user: null });
});
