/** Where people can be told, as an operator configures it. */
import { z } from 'zod';
import { nearest } from '../lib/nearest.ts';
import { NOTICE_KINDS } from './notice.ts';

const text = z.string().max(4096);
const shared = {
  /** Hosts of private networks and of this machine are refused without it. */
  allowPrivate: z.boolean().default(false),
  /** Whose jobs may name it; empty: everybody's. */
  tenants: z.array(z.string().min(1).max(100)).max(1000).default([]),
};
/** Addresses with a token in them are secrets: in a file or a variable, never here. */
const secretUrl = { urlFile: text.default(''), urlVariable: text.default('') };

const webhook = z.strictObject({
  kind: z.literal('webhook'),
  url: text.default(''),
  ...secretUrl,
  secretFile: text.default(''),
  secretVariable: text.default(''),
  ...shared,
});

const slack = z.strictObject({ kind: z.literal('slack'), ...secretUrl, ...shared });

const address = z
  .string()
  .max(320)
  .regex(/^[^\s<>,;:"()[\]]+@[^\s<>,;:"()[\]]+$/, 'is no address');

const email = z.strictObject({
  kind: z.literal('email'),
  host: text.min(1),
  port: z.int().min(1).max(65_535).default(587),
  /** starttls: refused where the server has none. */
  tls: z.enum(['starttls', 'tls', 'none']).default('starttls'),
  /** Who signed its certificate, if nobody that everybody knows. */
  caFile: text.default(''),
  user: text.default(''),
  passwordFile: text.default(''),
  passwordVariable: text.default(''),
  from: address,
  to: z.array(address).min(1).max(50),
  ...shared,
});

const channel = z.discriminatedUnion('kind', [webhook, slack, email]);
const tellRule = z.strictObject({
  to: text.min(1),
  on: z.array(z.enum(NOTICE_KINDS)).min(1).default(['failed', 'done', 'budget']),
});

export const notifySettings = z
  .strictObject({
    channels: z.record(z.string().regex(/^[A-Za-z0-9._-]{1,100}$/), channel).default({}),
    /** By tenant, `*` for all others: whom jobs that name nobody tell, and who hears of budgets. */
    defaults: z.record(z.string().min(1).max(100), z.array(tellRule).max(20)).default({}),
  })
  .prefault({});

export type NotifySettings = z.output<typeof notifySettings>;
export type ChannelSettings = z.output<typeof channel>;
type Fail = (setting: string, message: string) => void;

export function checkNotify({ channels, defaults }: NotifySettings, fail: Fail): void {
  for (const [name, one] of Object.entries(channels)) checkChannel(name, one, fail);
  const known = Object.keys(channels);
  for (const [tenant, rules] of Object.entries(defaults)) {
    for (const { to } of rules) {
      if (known.includes(to)) continue;
      const guess = nearest(to, known);
      const meant = guess ? `; did you mean "${guess}"?` : '';
      fail('notify.defaults', `${tenant} names the channel "${to}", which does not exist${meant}`);
    }
  }
}

function checkChannel(name: string, one: ChannelSettings, fail: Fail): void {
  const complain = (what: string): void => fail('notify.channels', `${name}: ${what}`);
  if (one.kind === 'email') {
    const ways = given(one.passwordFile, one.passwordVariable);
    if (ways > 1) complain('give one of passwordFile and passwordVariable');
    if (!one.user !== (ways === 0)) complain('user needs passwordFile or passwordVariable');
    if (one.user && one.tls === 'none') complain('a password is not sent without TLS');
    return;
  }
  const url = one.kind === 'webhook' ? one.url : '';
  if (given(url, one.urlFile, one.urlVariable) !== 1) {
    complain(`needs one of ${one.kind === 'webhook' ? 'url, ' : ''}urlFile and urlVariable`);
  }
  if (url && !/^https?:\/\/[^/?#@]+([/?#]|$)/.test(url)) {
    complain('url is no http(s):// address, or holds a password; name a file by urlFile');
  }
  if (one.kind === 'webhook' && given(one.secretFile, one.secretVariable) !== 1) {
    complain('needs the key it signs with: one of secretFile and secretVariable');
  }
}

function given(...values: string[]): number {
  return values.filter((value) => value !== '').length;
}
