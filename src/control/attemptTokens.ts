/**
 * Tokens of other services for attempts: minted when one starts, and again whenever its agent says
 * that they are about to run out. They are in no row and no event.
 */
import type { Granted } from '../exchange/contract.ts';
import type { Minter } from '../exchange/mint.ts';
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import type { Attempt } from '../model/attempt.ts';
import type { JobDownstream } from '../model/downstream.ts';
import type { AttemptUid } from '../model/ids.ts';
import type { AttemptTokens } from '../protocol/agent.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { State } from '../state/state.ts';
import type { Agents } from './agents.ts';
import type { Committer } from './committer.ts';
import { heldAttempt, type Held } from './heldAttempt.ts';
import type { Mutate } from './mutate.ts';

/** Asked for again after this long where the server could not be asked. */
const RETRY_MS = 10_000;
/** A refusal may be taken back; nothing else asks again where there is no token to renew. */
const LONGEST_RENEWAL_MS = 3_600_000;
const SHORTEST_RENEWAL_MS = 1000;
/** So many attempts that have ended are remembered: forgetting is a look at all. */
const MOST_TOLD = 1000;

export interface AttemptTokenOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  clock: Clock;
  agents: Pick<Agents, 'workerOf'>;
  minter: Minter | undefined;
  log: Log;
}

/** What became of one service's token. */
interface Outcome {
  audience: string;
  required: boolean;
  got: Awaited<ReturnType<Minter['mint']>>;
}

export function createAttemptTokens(
  options: AttemptTokenOptions,
): Pick<Coordinator, 'attemptTokens'> {
  const { state, mutate, committer, agents, clock, minter, log } = options;
  /** What was last noted of an attempt: only news are events. */
  const told = new Map<AttemptUid, string>();

  /** What is being stopped may have to save something first. */
  const held = (workerToken: string, uid: string): Held =>
    heldAttempt(state, agents, workerToken, uid, true);

  function forgetEnded(): void {
    for (const uid of told.keys()) if (!state.attempts.has(uid)) told.delete(uid);
  }

  function mintAll(who: JobDownstream): Promise<Outcome[]> {
    if (!minter) throw new DroverError('UNAVAILABLE', 'this controller exchanges no tokens');
    const job = {
      current: () => state.downstream.get(who.job),
      reseal: (from: string, to: string) => void mutate({ kind: 'reseal', from, to }),
    };
    return Promise.all(
      who.audiences.map(async (audience) => ({
        audience,
        required: minter.settings.audiences[audience]?.required ?? false,
        got: await minter.mint(job, audience),
      })),
    );
  }

  function record(attempt: Attempt, who: JobDownstream, outcomes: readonly Outcome[]): void {
    const { uid, tenant, job, task, worker } = attempt;
    const news = outcomes.map(({ got }) => (got.kind === 'granted' ? '' : got.reason)).join('\n');
    if (told.get(uid) === news) return;
    told.set(uid, news);
    if (told.size > MOST_TOLD + 2 * state.attempts.size) forgetEnded();
    const note = { kind: 'note', tenant, job, task, attempt: uid } as const;
    const given = outcomes.filter(({ got }) => got.kind === 'granted');
    if (given.length > 0) {
      const audiences = given.map(({ audience }) => audience).join(' ');
      mutate({ ...note, what: 'tokens.given', data: { by: worker, to: who.subject, audiences } });
    }
    for (const { audience, got } of outcomes) {
      if (got.kind === 'granted') continue;
      mutate({ ...note, what: 'tokens.refused', data: { audience, reason: got.reason } });
      log.warn({ attempt: uid, audience, problem: got.reason }, 'no token for an attempt');
    }
  }

  /** Before its start it can be tried again; what runs goes on, unless the policy is another. */
  function judge(attempt: Attempt, outcomes: readonly Outcome[]): void {
    const missing = outcomes.find(({ required, got }) => required && got.kind !== 'granted');
    if (!missing || missing.got.kind === 'granted') return;
    const { audience, got } = missing;
    const detail = `no token for "${audience}": ${missing.got.reason}`;
    if (attempt.startedAtMs === null) {
      throw new DroverError(got.kind === 'refused' ? 'PERMISSION_DENIED' : 'UNAVAILABLE', detail);
    }
    if (got.kind !== 'refused' || minter?.settings.onRefusal !== 'stop') return;
    const { uid, version } = attempt;
    mutate({ kind: 'stop', attempts: [{ uid, version }], cause: 'cancelled', reason: detail });
  }

  return {
    async attemptTokens(workerToken, uid) {
      const { job } = held(workerToken, uid);
      const who = state.downstream.get(job.id);
      if (!who) return { tokens: [], refused: [], renewInMs: LONGEST_RENEWAL_MS };
      const outcomes = await mintAll(who);
      // It may have ended, or moved, while the server was asked.
      const { attempt } = held(workerToken, uid);
      record(attempt, who, outcomes);
      await committer.durable();
      judge(attempt, outcomes);
      return answer(outcomes, clock.now());
    },
  };
}

function answer(outcomes: readonly Outcome[], nowMs: number): AttemptTokens {
  const tokens: AttemptTokens['tokens'] = [];
  const refused: AttemptTokens['refused'] = [];
  let renewInMs = LONGEST_RENEWAL_MS;
  for (const { audience, got } of outcomes) {
    if (got.kind === 'granted') {
      tokens.push({ audience, token: got.token, expiresAtMs: got.expiresAtMs });
      renewInMs = Math.min(renewInMs, renewalOf(got, nowMs));
    } else refused.push({ audience, reason: got.reason });
    if (got.kind === 'unavailable') renewInMs = Math.min(renewInMs, RETRY_MS);
  }
  return { tokens, refused, renewInMs: Math.max(SHORTEST_RENEWAL_MS, Math.round(renewInMs)) };
}

/** With a third of its life left, so that a server may be away for a while. */
function renewalOf({ expiresAtMs, lifeMs }: Granted, nowMs: number): number {
  return expiresAtMs - nowMs - lifeMs / 3;
}
