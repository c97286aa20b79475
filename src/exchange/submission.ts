/**
 * Tokens for what somebody submits: the caller's own token is exchanged for one of each service
 * while the caller is here, so that a refusal is heard at once.
 */
import { DroverError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import type { AudienceRefusal, SubmittedDownstream } from '../model/downstream.ts';
import type { AudienceSettings, ExchangeSettings } from '../model/exchangeSettings.ts';
import type { Principal } from '../model/token.ts';
import { TOKEN_TYPE } from './client.ts';
import type { Exchanged, SubjectToken, TokenExchange } from './contract.ts';
import { envelopeContext, seal, type MasterKeys } from './seal.ts';

/** What goes with a submission: who and where for our controller, tokens for a foreign one. */
interface Accompaniment {
  downstream?: SubmittedDownstream;
  /** By metadata; never stored. */
  downstreamTokens?: Record<string, string>;
}

export type Accompany = (who: Principal, bearer: string) => Promise<Accompaniment>;

export interface SubmissionOptions {
  settings: ExchangeSettings;
  exchange: TokenExchange;
  keys: MasterKeys | null;
  random: Random;
  log: Log;
}

interface Outcome {
  name: string;
  audience: AudienceSettings;
  exchanged: Exchanged;
  refreshToken: string | null;
}

export function createAccompany(options: SubmissionOptions): Accompany {
  const { settings } = options;
  const audiences = Object.entries(settings.audiences);
  return async (who, bearer) => {
    const { identity } = who;
    // What one issuer has given is shown to no other: only its own people's tokens are sent to it.
    const other = settings.issuer !== '' && identity?.issuer !== settings.issuer;
    if (!identity || other) {
      // A running job's children are its owner's too: the controller knows whose.
      if (who.job === undefined) requireNone(settings);
      return {};
    }
    const subject = { token: bearer, type: `${TOKEN_TYPE}${settings.subjectType}` };
    const outcomes = await Promise.all(
      audiences.map(([name, audience]) => exchangeOne(options, subject, name, audience)),
    );
    for (const outcome of outcomes) {
      tell(options.log, identity.subject, outcome);
      refuseWithout(outcome);
    }
    const tokens = tokensOf(outcomes);
    const downstream = { ...identity, ...storedOf(options, who, outcomes) };
    return {
      downstream,
      ...(Object.keys(tokens).length > 0 && { downstreamTokens: tokens }),
    };
  };
}

async function exchangeOne(
  { settings, exchange }: SubmissionOptions,
  subject: SubjectToken,
  name: string,
  audience: AudienceSettings,
): Promise<Outcome> {
  const { refresh } = settings;
  const [exchanged, second] = await Promise.all([
    exchange.exchange(subject, audience, { offlineAccess: refresh === 'offline-access' }),
    refresh === 'refresh-token'
      ? exchange.exchange(subject, audience, { refreshToken: true })
      : undefined,
  ]);
  const given = second ?? exchanged;
  const refreshToken = refresh !== 'none' && given.kind === 'granted' ? given.refreshToken : null;
  return { name, audience, exchanged, refreshToken };
}

/** An operator must see what only users are told otherwise: a credential that ran out, say. */
function tell(log: Log, subject: string, { name, exchanged }: Outcome): void {
  if (exchanged.kind === 'granted') return;
  const { kind, reason } = exchanged;
  log.warn({ audience: name, subject, kind, problem: reason }, 'no token for a submission');
}

function requireNone({ audiences, issuer }: ExchangeSettings): void {
  const name = Object.keys(audiences).find((one) => audiences[one]?.required);
  if (name === undefined) return;
  const detail = `Every job here needs a token for "${name}", which needs a token of its issuer`;
  const hint = `Log in with the issuer${issuer && ` ${issuer}`} and submit with its token.`;
  throw new DroverError('PERMISSION_DENIED', detail, { hint });
}

function refuseWithout({ name, audience, exchanged }: Outcome): void {
  if (!audience.required || exchanged.kind === 'granted') return;
  const { kind, reason } = exchanged;
  if (kind === 'refused') {
    const detail = `No token for "${name}" is given to you: ${reason}`;
    const hint = 'Ask whoever runs the service for access; every job here needs it.';
    throw new DroverError('PERMISSION_DENIED', detail, { hint });
  }
  const detail = `No token for "${name}" could be had: ${reason}`;
  throw new DroverError('UNAVAILABLE', detail, { hint: 'Try again in a few seconds.' });
}

function tokensOf(outcomes: readonly Outcome[]): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const { audience, exchanged } of outcomes) {
    const { metadata } = audience;
    if (metadata && exchanged.kind === 'granted') tokens[metadata] = exchanged.token;
  }
  return tokens;
}

/** What nobody refused is tried again at the start: the server may be back by then. */
function storedOf(
  { keys, random }: SubmissionOptions,
  { tenant, identity }: Principal,
  outcomes: readonly Outcome[],
): Pick<SubmittedDownstream, 'audiences' | 'sealed' | 'refused'> {
  const refused: AudienceRefusal[] = [];
  const refreshTokens: Record<string, string> = {};
  for (const { name, exchanged, refreshToken } of outcomes) {
    if (exchanged.kind !== 'granted') refused.push({ audience: name, reason: exchanged.reason });
    if (refreshToken !== null) refreshTokens[name] = refreshToken;
  }
  const audiences = outcomes
    .filter(({ exchanged }) => exchanged.kind !== 'refused')
    .map(({ name }) => name);
  const some = keys && identity && Object.keys(refreshTokens).length > 0;
  const context = identity ? envelopeContext({ ...identity, tenant }) : '';
  const sealed = some ? seal(keys, JSON.stringify(refreshTokens), context, random) : null;
  return { audiences, sealed, refused };
}
