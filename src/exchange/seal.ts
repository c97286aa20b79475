/**
 * Envelopes for refresh tokens: each has a random key of its own, which lies in it under the master
 * key. A new master key is put before the old ones, which open what they have closed.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { DroverError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = 'v1';

export interface MasterKeys {
  /** Closes new envelopes. */
  first: string;
  byId: ReadonlyMap<string, Buffer>;
}

/** A line each, `ID:KEY` with 32 bytes in base64. */
export function readMasterKeys(text: string, path: string): MasterKeys {
  const byId = new Map<string, Buffer>();
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line === '' || line.startsWith('#')) continue;
    const [, id, base64] = /^([\w-]{1,32}):([A-Za-z0-9+/]{43}=)$/.exec(line) ?? [];
    if (!id || !base64) throw wrongKeys(path, 'holds a line that is not ID:KEY');
    if (byId.has(id)) throw wrongKeys(path, `has the key "${id}" twice`);
    byId.set(id, Buffer.from(base64, 'base64'));
  }
  const [first] = byId.keys();
  if (first === undefined) throw wrongKeys(path, 'holds no key');
  return { first, byId };
}

function wrongKeys(path: string, why: string): DroverError {
  return new DroverError('INVALID_ARGUMENT', `exchange.masterKeyFile (${path}) ${why}`, {
    hint: 'echo "k1:$(openssl rand -base64 32)" > FILE; chmod 600 FILE',
  });
}

/** `context` is not in the envelope, but it opens only with the same: it cannot be moved. */
export function seal(keys: MasterKeys, text: string, context: string, random: Random): string {
  const dataKey = Buffer.from(random.hex(KEY_BYTES), 'hex');
  const id = keys.first;
  const wrapped = encrypt(masterKey(keys, id), dataKey, `${VERSION} ${id} ${context}`, random);
  const content = encrypt(dataKey, Buffer.from(text), context, random);
  return [VERSION, id, wrapped.toString('base64url'), content.toString('base64url')].join('.');
}

/** Throws where the key is gone, or the envelope is not what we have closed. */
export function open(keys: MasterKeys, sealed: string, context: string): string {
  const [version, id = '', wrapped = '', content = ''] = sealed.split('.');
  if (version !== VERSION) throw new Error('the envelope is of another version');
  const bytes = Buffer.from(wrapped, 'base64url');
  const dataKey = decrypt(masterKey(keys, id), bytes, `${VERSION} ${id} ${context}`);
  return decrypt(dataKey, Buffer.from(content, 'base64url'), context).toString();
}

function masterKey(keys: MasterKeys, id: string): Buffer {
  const key = keys.byId.get(id);
  if (key) return key;
  throw new Error(`the master key "${id}" is not in exchange.masterKeyFile`);
}

function encrypt(key: Buffer, plain: Buffer, context: string, random: Random): Buffer {
  const nonce = Buffer.from(random.hex(NONCE_BYTES), 'hex');
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(context));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), body]);
}

function decrypt(key: Buffer, bytes: Buffer, context: string): Buffer {
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context)).setAuthTag(tag);
  return Buffer.concat([
    decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)),
    decipher.final(),
  ]);
}

/** An envelope is one person's in one tenant. */
export function envelopeContext(who: { tenant: string; issuer: string; subject: string }): string {
  return JSON.stringify([who.tenant, who.issuer, who.subject]);
}
