/**
 * Remembers what `authenticate` said for a few seconds, so that a busy client costs one lookup, not
 * one per request. Eviction is first in, first out: with a life of 5 s that is as good as least
 * recently used, and a hit writes nothing.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Principal } from '../../model/token.ts';
import type { GatewayLimits } from '../limits.ts';
import type { Admitted, Authenticate } from './authenticate.ts';

interface Entry {
  principal: Admitted | undefined;
  atMs: number;
}

export type TokenCacheOptions = {
  authenticate: Authenticate;
  clock: Clock;
} & Pick<GatewayLimits, 'tokenCacheMs' | 'unknownTokenCacheMs' | 'tokenCacheEntries'>;

export class TokenCache {
  hits = 0;
  misses = 0;
  readonly #options: TokenCacheOptions;
  readonly #known = new Map<string, Entry>();
  readonly #unknown = new Map<string, Entry>();
  /** Lookups under way: callers with the same token share one. */
  readonly #asked = new Map<string, Promise<Principal | undefined>>();

  constructor(options: TokenCacheOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#known.size + this.#unknown.size;
  }

  /** The principal if it is remembered, without a promise: this is every request's way in. */
  peek(secret: string): Principal | undefined {
    const entry = this.#known.get(secret);
    if (entry === undefined || !this.#fresh(entry, this.#options.tokenCacheMs)) return undefined;
    this.hits++;
    return entry.principal;
  }

  /** Whether it was good when it was last asked about, however long ago that is. */
  knew(secret: string): boolean {
    return this.#known.has(secret);
  }

  async lookup(secret: string): Promise<Principal | undefined> {
    const remembered = this.peek(secret);
    if (remembered) return remembered;
    const unknown = this.#unknown.get(secret);
    if (unknown && this.#fresh(unknown, this.#options.unknownTokenCacheMs)) {
      this.hits++;
      return undefined;
    }
    const asked = this.#asked.get(secret);
    if (asked) return asked;
    this.misses++;
    const asking = this.#ask(secret);
    this.#asked.set(secret, asking);
    return asking;
  }

  /** A token was revoked through this gateway: it must not work here for another moment. */
  forget(tokenId: string): void {
    for (const [secret, entry] of this.#known) {
      if (entry.principal?.token === tokenId) this.#known.delete(secret);
    }
  }

  /** Somebody left or came back: whoever it was is asked about again. */
  clear(): void {
    this.#known.clear();
  }

  async #ask(secret: string): Promise<Principal | undefined> {
    // Counted from before the question: the answer may be as old as that.
    const atMs = this.#options.clock.now();
    try {
      const principal = await this.#options.authenticate(secret);
      this.#remember(secret, { principal, atMs });
      return principal;
    } finally {
      this.#asked.delete(secret);
    }
  }

  #remember(secret: string, entry: Entry): void {
    (entry.principal ? this.#unknown : this.#known).delete(secret);
    const into = entry.principal ? this.#known : this.#unknown;
    // Deleted first, so that a renewed entry moves to the end of the line.
    into.delete(secret);
    if (into.size >= this.#options.tokenCacheEntries) {
      for (const oldest of into.keys()) {
        into.delete(oldest);
        break;
      }
    }
    into.set(secret, entry);
  }

  /** A clock that stepped back makes an entry look unborn; that counts as too old. */
  #fresh(entry: Entry, lifeMs: number): boolean {
    const nowMs = this.#options.clock.now();
    const ageMs = nowMs - entry.atMs;
    return ageMs >= 0 && ageMs < lifeMs && nowMs < (entry.principal?.untilMs ?? Infinity);
  }
}
