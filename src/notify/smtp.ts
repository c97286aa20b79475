/** The few words of SMTP it takes to hand over one message: EHLO, STARTTLS, AUTH, MAIL, DATA. */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { DroverError } from '../lib/errors.ts';
import type { Address } from './address.ts';

export interface Relay {
  host: string;
  /** Where that host is, as it was checked. */
  at: Address;
  port: number;
  tls: 'starttls' | 'tls' | 'none';
  /** Who signed its certificate, if nobody that everybody knows. */
  ca?: string | undefined;
  login?: { user: string; password: string } | undefined;
}

export interface Mail {
  from: string;
  to: readonly string[];
  /** Headers and body, lines ended by CRLF. */
  text: string;
}

interface Reply {
  code: number;
  lines: string[];
}

/** No server has more to say. */
const REPLY_LIMIT = 64 * 1024;

/** Resolves when the server has taken it for all of its receivers. */
export async function sendMail(relay: Relay, mail: Mail, signal: AbortSignal): Promise<void> {
  let talk = await open(relay, signal);
  try {
    await talk.expect(220, 'greeting');
    let can = await hello(talk);
    if (relay.tls === 'starttls') {
      if (!can.some((word) => /^STARTTLS$/i.test(word))) {
        throw new DroverError('UNAVAILABLE', `the mail server ${relay.host} has no STARTTLS`);
      }
      await talk.say('STARTTLS', 220);
      talk = await secure(talk.socket, relay, signal);
      can = await hello(talk);
    }
    if (relay.login) await logIn(talk, relay.login, can);
    await talk.say(`MAIL FROM:<${mail.from}>`, 250);
    for (const to of mail.to) await talk.say(`RCPT TO:<${to}>`, 250, 251);
    await talk.say('DATA', 354);
    await talk.say(`${mail.text.replaceAll(/^\./gm, '..')}\r\n.`, 250);
    talk.socket.end('QUIT\r\n');
    talk.socket.destroySoon();
  } catch (error) {
    talk.socket.destroy();
    throw error;
  }
}

async function open(relay: Relay, signal: AbortSignal): Promise<Talk> {
  const { at, port, tls } = relay;
  const socket = connectTcp({ host: at.address, port, family: at.family, signal });
  if (tls === 'tls') return secure(socket, relay, signal);
  return new Talk(socket);
}

/** The certificate must be the host's, wherever its address came from. */
function secure(socket: Socket, { host, ca }: Relay, signal: AbortSignal): Promise<Talk> {
  return new Promise((resolve, reject) => {
    const inner = connectTls({ socket, servername: host, ...(ca && { ca }) });
    signal.addEventListener('abort', () => inner.destroy(signal.reason as Error), { once: true });
    inner.once('error', reject);
    socket.once('error', reject);
    inner.once('secureConnect', () => resolve(new Talk(inner)));
  });
}

async function hello(talk: Talk): Promise<string[]> {
  const { lines } = await talk.say('EHLO drover', 250);
  return lines.slice(1);
}

async function logIn(
  talk: Talk,
  { user, password }: { user: string; password: string },
  can: string[],
): Promise<void> {
  const ways = can.find((word) => /^AUTH /i.test(word))?.toUpperCase() ?? '';
  const coded = (text: string): string => Buffer.from(text).toString('base64');
  if (ways.includes('PLAIN') || !ways.includes('LOGIN')) {
    await talk.say(`AUTH PLAIN ${coded(`\0${user}\0${password}`)}`, 235);
    return;
  }
  await talk.say('AUTH LOGIN', 334);
  await talk.say(coded(user), 334);
  await talk.say(coded(password), 235);
}

/** One command, one reply. */
class Talk {
  readonly socket: Socket;
  #text = '';
  #wake: (() => void) | null = null;
  #broken: Error | null = null;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      this.#text += text;
      if (this.#text.length > REPLY_LIMIT) this.#fail(new Error('the mail server says too much'));
      this.#wake?.();
    });
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the mail server closed the connection')));
  }

  #fail(error: Error): void {
    this.#broken ??= error;
    this.#wake?.();
  }

  async say(text: string, ...wanted: number[]): Promise<Reply> {
    // What came unasked was not said by the server, or not in answer to us.
    if (this.#text !== '') throw new Error('the mail server speaks out of turn');
    this.socket.write(`${text}\r\n`);
    return this.#reply(wanted, text.slice(0, 4));
  }

  expect(code: number, what: string): Promise<Reply> {
    return this.#reply([code], what);
  }

  async #reply(wanted: number[], what: string): Promise<Reply> {
    let found = takeReply(this.#text);
    while (!found) {
      if (this.#broken) throw this.#broken;
      await new Promise<void>((resolve) => (this.#wake = resolve));
      found = takeReply(this.#text);
    }
    this.#text = found.rest;
    const { reply } = found;
    if (wanted.includes(reply.code)) return reply;
    const said = `${reply.code} ${reply.lines.at(-1) ?? ''}`.slice(0, 200);
    throw new DroverError('UNAVAILABLE', `the mail server answered ${what} with: ${said}`);
  }
}

/** `250-…` goes on, `250 …` ends it. */
function takeReply(text: string): { reply: Reply; rest: string } | null {
  const end = /^(\d{3})(?: (.*))?\r?\n/m.exec(text);
  if (!end) return null;
  const rest = text.slice(end.index + end[0].length);
  const before = text.slice(0, end.index).split(/\r?\n/).filter(Boolean);
  const lines = [...before.map((line) => line.slice(4)), end[2] ?? ''];
  return { reply: { code: Number(end[1]), lines }, rest };
}
