/**
 * Tokens for attempts, when they start and again before they run out: by our own word for whoever
 * submitted the job, and where the server does not take that, by the refresh token of the
 * submission.
 */
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import type { Downstream, JobDownstream } from '../model/downstream.ts';
import type { AudienceSettings, ExchangeSettings } from '../model/exchangeSettings.ts';
import type { Exchanged, Granted, SubjectToken, TokenExchange } from './contract.ts';
import { envelopeContext, open, seal, type MasterKeys } from './seal.ts';

/** Tokens that are remembered, so that the thousand tasks of an array ask once. */
const MOST_REMEMBERED = 10_000;

export interface MintOptions {
  settings: ExchangeSettings;
  exchange: TokenExchange;
  /** Undefined where there is no key to sign it with. */
  assertionFor: ((who: Downstream) => SubjectToken) | undefined;
  keys: MasterKeys | null;
  clock: Pick<Clock, 'now'>;
  random: Random;
}

/** A job as it is now: its envelope may be another by the time it is opened. */
export interface MintFor {
  current: () => JobDownstream | undefined;
  /** The server has replaced a refresh token: the old envelope is worth nothing any more. */
  reseal: (from: string, to: string) => void;
}

export interface Minter {
  readonly settings: ExchangeSettings;
  mint(job: MintFor, audience: string): Promise<Exchanged>;
}

export function createMinter(options: MintOptions): Minter {
  const { settings, exchange, assertionFor, clock } = options;
  const known = new Map<string, Granted>();
  const asked = new Map<string, Promise<Exchanged>>();
  /** Who opens and closes an envelope does so alone. */
  const turns = new Map<string, Promise<unknown>>();

  async function ask(job: MintFor, who: JobDownstream, name: string): Promise<Exchanged> {
    const audience = settings.audiences[name];
    if (!audience) return refused(`the audience "${name}" is not configured any more`);
    const first = assertionFor
      ? await exchange.exchange(assertionFor(who), audience)
      : refused('the controller has no key to vouch with (exchange.keyFile)');
    if (first.kind !== 'refused') return first;
    const second = await inTurn(envelopeContext(who), () => refresh(job, name, audience));
    if (second.kind !== 'refused') return second;
    return refused(`${first.reason}; ${second.reason}`);
  }

  async function refresh(
    job: MintFor,
    name: string,
    audience: AudienceSettings,
  ): Promise<Exchanged> {
    const who = job.current();
    if (!who || who.sealed === null) return refused('it has no refresh token');
    const { keys } = options;
    if (!keys) return unavailable('there is no exchange.masterKeyFile to open its envelope with');
    let tokens: Record<string, string>;
    try {
      tokens = JSON.parse(open(keys, who.sealed, envelopeContext(who))) as Record<string, string>;
    } catch (error) {
      return unavailable(`its envelope could not be opened: ${(error as Error).message}`);
    }
    const token = tokens[name];
    if (token === undefined) return refused('it has no refresh token');
    const got = await exchange.refresh(token, audience);
    if (got.kind === 'granted' && got.refreshToken !== null && got.refreshToken !== token) {
      const text = JSON.stringify({ ...tokens, [name]: got.refreshToken });
      job.reseal(who.sealed, seal(keys, text, envelopeContext(who), options.random));
    }
    return got;
  }

  async function inTurn<Result>(key: string, run: () => Promise<Result>): Promise<Result> {
    const before = turns.get(key) ?? Promise.resolve();
    const mine = before.then(run);
    const settled = mine.catch(() => undefined);
    turns.set(key, settled);
    try {
      return await mine;
    } finally {
      if (turns.get(key) === settled) turns.delete(key);
    }
  }

  async function askOnce(key: string, job: MintFor, who: JobDownstream, name: string) {
    try {
      const got = await ask(job, who, name);
      if (got.kind === 'granted') {
        if (known.size >= MOST_REMEMBERED) known.clear();
        known.set(key, { ...got, refreshToken: null });
      }
      return got;
    } finally {
      asked.delete(key);
    }
  }

  return {
    settings,
    async mint(job, name) {
      const who = job.current();
      if (!who) return refused('it gets no tokens');
      const key = JSON.stringify([envelopeContext(who), name]);
      const remembered = known.get(key);
      // Nobody is given one that is half over.
      if (remembered && remembered.expiresAtMs - clock.now() > remembered.lifeMs / 2) {
        return remembered;
      }
      known.delete(key);
      const asking = asked.get(key) ?? askOnce(key, job, who, name);
      asked.set(key, asking);
      return asking;
    },
  };
}

function refused(reason: string): Exchanged {
  return { kind: 'refused', reason };
}

function unavailable(reason: string): Exchanged {
  return { kind: 'unavailable', reason };
}
