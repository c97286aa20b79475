/**
 * Who may see a proxied page: a browser that came by a one-time link has a cookie for that endpoint
 * alone. Both are random names for a token that only this process knows, so that no token is in an
 * address, a history or a page. A gateway that is started anew asks for a new link.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';

export const SESSION_COOKIE = 'drover_proxy';
/** From the command that prints the link to the browser that opens it. */
const LOGIN_MS = 120_000;
/** A session that nobody used for so long is over. */
const SESSION_IDLE_MS = 12 * 3_600_000;
/** Links and sessions each; the oldest give way. */
const MOST_KEPT = 10_000;
const NAME_BYTES = 24;

interface Entry {
  endpoint: string;
  /** The token, checked anew with each request: one that is revoked ends its sessions. */
  bearer: string;
  untilBootMs: number;
}

export class ProxySessions {
  readonly #clock: Clock;
  readonly #logins = new Map<string, Entry>();
  readonly #sessions = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The code of a link that can be used once. */
  createLogin(endpoint: string, bearer: string): string {
    return this.#add(this.#logins, { endpoint, bearer }, LOGIN_MS);
  }

  /** Spends the code for the name of a session. */
  login(endpoint: string, code: string): string {
    const found = this.#live(this.#logins, code);
    this.#logins.delete(code);
    if (found?.endpoint === endpoint) {
      return this.#add(this.#sessions, { endpoint, bearer: found.bearer }, SESSION_IDLE_MS);
    }
    throw new DroverError('UNAUTHENTICATED', 'this link was used already, or is too old', {
      hint: 'ask for a new one: drover notebook ID',
    });
  }

  /** The token of a session; undefined where there is none for this endpoint. */
  bearerOf(endpoint: string, session: string): string | undefined {
    const found = this.#live(this.#sessions, session);
    if (found?.endpoint !== endpoint) return undefined;
    found.untilBootMs = this.#clock.bootMs() + SESSION_IDLE_MS;
    return found.bearer;
  }

  #add(entries: Map<string, Entry>, entry: Omit<Entry, 'untilBootMs'>, forMs: number): string {
    const now = this.#clock.bootMs();
    for (const [name, { untilBootMs }] of entries) if (untilBootMs < now) entries.delete(name);
    const [oldest] = entries.keys();
    if (entries.size >= MOST_KEPT && oldest !== undefined) entries.delete(oldest);
    const name = randomBytes(NAME_BYTES).toString('base64url');
    entries.set(name, { ...entry, untilBootMs: now + forMs });
    return name;
  }

  #live(entries: Map<string, Entry>, name: string): Entry | undefined {
    const found = entries.get(name);
    return found !== undefined && found.untilBootMs >= this.#clock.bootMs() ? found : undefined;
  }
}
