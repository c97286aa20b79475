/** Answers 429: what was too much, when to come again, and the standard's headers for both. */
import { DroverError } from '../../lib/errors.ts';
import type { Bucket } from './bucket.ts';

export const REASONS = ['rate', 'jobs', 'calls', 'streams', 'failures', 'overload'] as const;
export type Reason = (typeof REASONS)[number];

/** What a refused caller is told. */
export interface Refusal {
  reason: Reason;
  detail: string;
  hint: string;
  retryAfterSeconds: number;
  /** Whose rate was reached. */
  bucket?: Bucket;
}

/** A refusal as an error, where one may be thrown; the early way does without its stack. */
export class LimitReached extends DroverError {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super('TOO_MANY', refusal.detail, { hint: refusal.hint });
    this.refusal = refusal;
  }
}

/** Whole seconds, as the header wants them: never less than it takes. */
export function secondsOf(waitMs: number): number {
  return Math.max(1, Math.ceil(waitMs / 1000));
}

/** `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers: a burst, and how long it lasts. */
export function policyHeader({ rate: { perSecond, burst } }: Bucket): string {
  return `"requests";q=${Math.floor(burst)};w=${Math.max(1, Math.round(burst / perSecond))}`;
}

/** `RateLimit` of the same: what is left, and when there is more. */
export function leftHeader(bucket: Bucket, afterSeconds: number): string {
  return `"requests";r=${bucket.left};t=${afterSeconds}`;
}
