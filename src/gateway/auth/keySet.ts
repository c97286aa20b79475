/**
 * The keys of one issuer as they are now: loaded when first needed, looked at again from time to
 * time and for a key that nobody knows, but never more often than the issuer should be asked.
 */
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { SignatureAlgorithm } from '../../model/authSettings.ts';
import { readKeySet, type IssuerKey } from './issuerKeys.ts';
import { away, type KeySource } from './keySource.ts';
import type { AuthLimits } from './limits.ts';

export interface KeySetOptions {
  source: KeySource;
  /** For keys that name no algorithm. */
  algorithms: readonly SignatureAlgorithm[];
  clock: Clock;
  log: Log;
  limits: AuthLimits;
}

export class KeySet {
  readonly #options: KeySetOptions;
  #keys: IssuerKey[] = [];
  #loadedAtMs = -Infinity;
  #triedAtMs = -Infinity;
  /** Why the last look failed. */
  #failure: DroverError | undefined;
  #loading: Promise<void> | undefined;

  constructor(options: KeySetOptions) {
    this.#options = options;
  }

  /** Undefined when the issuer has no such key; rejects with UNAVAILABLE when nobody can say. */
  async find(kid: string | undefined, algorithm: string): Promise<IssuerKey | undefined> {
    const { source, limits } = this.#options;
    if (!this.#within(this.#loadedAtMs, source.freshMs)) await this.#refresh();
    if (!this.#within(this.#loadedAtMs, Math.max(source.freshMs, limits.keysStaleMs))) {
      throw this.#failure ?? away('they were never read');
    }
    const found = pick(this.#keys, kid, algorithm);
    if (found || source.freshMs === Infinity) return found;
    await this.#refresh();
    // The key may be in what could not be read.
    if (this.#failure) throw this.#failure;
    return pick(this.#keys, kid, algorithm);
  }

  async #refresh(): Promise<void> {
    const { source, limits } = this.#options;
    const pauseMs = Math.min(limits.keysRefetchMs, source.freshMs);
    if (!this.#loading && this.#within(this.#triedAtMs, pauseMs)) return;
    this.#loading ??= this.#load().finally(() => (this.#loading = undefined));
    await this.#loading;
  }

  async #load(): Promise<void> {
    const { source, algorithms, clock, log, limits } = this.#options;
    const atMs = clock.now();
    this.#triedAtMs = atMs;
    try {
      this.#keys = parse(await source.load(), algorithms, limits.keys);
      this.#loadedAtMs = atMs;
      this.#failure = undefined;
    } catch (error) {
      this.#failure = error instanceof DroverError ? error : away('the gateway failed', error);
      log.warn({ err: this.#failure.message }, 'the keys of an issuer could not be read');
    }
  }

  /** A clock that stepped back makes a time look unborn; that counts as long ago. */
  #within(sinceMs: number, periodMs: number): boolean {
    const ageMs = this.#options.clock.now() - sinceMs;
    return ageMs >= 0 && ageMs < periodMs;
  }
}

function parse(
  body: unknown,
  algorithms: readonly SignatureAlgorithm[],
  mostKeys: number,
): IssuerKey[] {
  try {
    return readKeySet(body, algorithms, mostKeys);
  } catch (cause) {
    throw away('what it sent is no key set', cause);
  }
}

/** A token that names no key can only mean the one of an issuer that has one. */
function pick(
  keys: readonly IssuerKey[],
  kid: string | undefined,
  algorithm: string,
): IssuerKey | undefined {
  const fits = (key: IssuerKey): boolean => key.algorithms.some((one) => one === algorithm);
  if (kid === undefined) return keys.length === 1 ? keys.find(fits) : undefined;
  return keys.find((key) => key.kid === kid && fits(key));
}
