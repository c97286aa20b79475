/** E-mail through an SMTP server: one plain text for all receivers of the channel. */
import type { NoticeMessage } from '../model/noticeMessage.ts';
import { checkedAddress, type Resolve } from './address.ts';
import type { Channel } from './contract.ts';
import { sendMail, type Relay } from './smtp.ts';

export interface EmailOptions extends Pick<Relay, 'host' | 'port' | 'tls'> {
  user: string;
  password: () => Promise<string>;
  ca: () => Promise<string>;
  from: string;
  to: readonly string[];
  allowPrivate: boolean;
  tenants: readonly string[];
  resolve?: Resolve | undefined;
}

/** Bytes of a header's word before it is coded: 75 characters are allowed after. */
const WORD_BYTES = 42;
const LINE_CHARACTERS = 76;

export function emailChannel(options: EmailOptions): Channel {
  const { host, port, tls, user, from, to, allowPrivate, tenants } = options;
  const login = async (): Promise<Relay['login']> =>
    user ? { user, password: await options.password() } : undefined;
  return {
    tenants,
    async check() {
      await login();
      await options.ca();
    },
    async send(message, signal) {
      const ca = (await options.ca()) || undefined;
      const at = await checkedAddress(host, allowPrivate, options.resolve);
      const relay = { host, at, port, tls, ca, login: await login() };
      await sendMail(relay, { from, to, text: textOf(message, from, to) }, signal);
    },
  };
}

function textOf(message: NoticeMessage, from: string, to: readonly string[]): string {
  const { id, kind, cluster, subject, lines, atMs } = message;
  const body = [...lines, '', `${kind}, notice ${id}, from Drover on ${cluster}`].join('\r\n');
  return [
    `From: Drover <${from}>`,
    `To: ${to.join(',\r\n ')}`,
    `Subject: ${coded(`[${cluster}] ${subject}`)}`,
    `Date: ${new Date(atMs).toUTCString().replace('GMT', '+0000')}`,
    // The same when it is sent again, so that mail programs show it once.
    `Message-ID: <${id}@drover.invalid>`,
    `X-Drover-Notice: ${id}`,
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: base64',
    '',
    ...folded(Buffer.from(body).toString('base64')),
  ].join('\r\n');
}

/** As encoded words: nothing in it can end the header. */
function coded(text: string): string {
  const words: string[] = [];
  let word = '';
  for (const character of text) {
    if (Buffer.byteLength(word + character) > WORD_BYTES) {
      words.push(word);
      word = '';
    }
    word += character;
  }
  if (word) words.push(word);
  return words.map((part) => `=?UTF-8?B?${Buffer.from(part).toString('base64')}?=`).join('\r\n ');
}

function folded(text: string): string[] {
  const lines: string[] = [];
  for (let at = 0; at < text.length; at += LINE_CHARACTERS) {
    lines.push(text.slice(at, at + LINE_CHARACTERS));
  }
  return lines;
}
