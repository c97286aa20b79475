/** The key file of a gateway: read again when it changes, and never believed when it is broken. */
import { readFile, stat } from 'node:fs/promises';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import { gatewayKeyEntry, hashGatewayKey, type GatewayKeyEntry } from '../../model/gatewayKey.ts';
import type { Identity } from '../../model/token.ts';
import type { AuthLimits } from './limits.ts';

export interface KeyFileOptions {
  path: string;
  clock: Clock;
  log: Log;
  limits: Pick<AuthLimits, 'fileCheckMs'>;
}

/** What tokens of the file have as their issuer. */
const KEY_FILE_ISSUER = 'key-file';

/** Who can add a line can be anybody. */
const EVERYBODY_WRITES = 0o002;

type Keys = ReadonlyMap<string, GatewayKeyEntry>;

export class KeyFile {
  readonly #options: KeyFileOptions;
  #lookedAtMs = -Infinity;
  #stamp = '';
  #keys: Promise<Keys> = Promise.resolve(new Map());

  private constructor(options: KeyFileOptions) {
    this.#options = options;
  }

  /** Rejects where the file cannot be read, so that a gateway does not start without it. */
  static async open(options: KeyFileOptions): Promise<KeyFile> {
    const file = new KeyFile(options);
    await file.#now().catch((error: DroverError) => {
      const detail = `auth.keyFile (${options.path}): ${reasonOf(error.cause)}`;
      const hint = 'Correct the file; `drover gateway-key create` prints entries for it.';
      throw new DroverError('INVALID_ARGUMENT', detail, { hint, cause: error });
    });
    return file;
  }

  /** Undefined when it has no such key, or one that has expired. */
  async find(key: string): Promise<Identity | undefined> {
    const entry = (await this.#now()).get(hashGatewayKey(key));
    if (!entry) return undefined;
    const { id, tenant, user, roles, expires } = entry;
    const expiresAtMs = expires === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(expires);
    if (expiresAtMs <= this.#options.clock.now()) return undefined;
    return { issuer: KEY_FILE_ISSUER, subject: id, tenant, user, roles, expiresAtMs };
  }

  #now(): Promise<Keys> {
    const { clock, limits } = this.#options;
    const ageMs = clock.now() - this.#lookedAtMs;
    if (ageMs < 0 || ageMs >= limits.fileCheckMs) {
      this.#lookedAtMs = clock.now();
      this.#keys = this.#look(this.#keys);
    }
    return this.#keys;
  }

  async #look(before: Promise<Keys>): Promise<Keys> {
    const { path, log } = this.#options;
    try {
      const { mtimeMs, ctimeMs, size, ino, mode } = await stat(path);
      if ((mode & EVERYBODY_WRITES) !== 0) throw new Error('everybody may write to it');
      const stamp = [mtimeMs, ctimeMs, size, ino].join(' ');
      if (stamp === this.#stamp) return await before;
      const keys = parseKeyFile(await readFile(path, 'utf8'));
      this.#stamp = stamp;
      log.info({ keys: keys.size }, 'the key file was read');
      return keys;
    } catch (cause) {
      this.#stamp = '';
      const reason = reasonOf(cause);
      log.error({ path, reason }, 'the key file cannot be read: none of its keys is taken');
      throw new DroverError('UNAVAILABLE', 'The key file of this gateway cannot be read', {
        hint: 'Whoever runs the gateway finds the reason in its log.',
        cause,
      });
    }
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** By hash. Throws with the entry that does not fit. */
function parseKeyFile(text: string): Map<string, GatewayKeyEntry> {
  // A pretty error would show lines of the file.
  const document = parseDocument(text, { prettyErrors: false });
  const [problem] = document.errors;
  if (problem) throw new Error(problem.message);
  const parsed = z.array(gatewayKeyEntry).safeParse(document.toJS() ?? []);
  if (!parsed.success) {
    const [first] = parsed.error.issues;
    const [index, ...below] = first?.path ?? [];
    const place = typeof index === 'number' ? `entry ${index + 1}` : 'the file';
    throw new Error([place, below.join('.'), first?.message].filter(Boolean).join(': '));
  }
  const keys = new Map<string, GatewayKeyEntry>();
  const ids = new Set<string>();
  for (const entry of parsed.data) {
    if (keys.has(entry.hash) || ids.has(entry.id)) throw new Error(`${entry.id} is there twice`);
    ids.add(entry.id);
    keys.set(entry.hash, entry);
  }
  return keys;
}
