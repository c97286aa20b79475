/** Tokens of other services, and for whom they are, between our types and the generated ones. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { z } from 'zod';
import type { SubmittedDownstream } from '../../model/downstream.ts';
import type { AttemptTokens } from '../agent.ts';
import type {
  AttemptTokensResponse,
  AttemptTokensResponseSchema,
} from '../gen/drover/v1/agent_pb.ts';
import type { Downstream, DownstreamSchema } from '../gen/drover/v1/job_pb.ts';
import { parse } from './check.ts';
import * as w from './wire.ts';

const text = z.string().max(4096);
/** Envelopes of a few refresh tokens; services are few. */
const downstream = z.strictObject({
  issuer: text,
  subject: text,
  audiences: z.array(text).max(100),
  sealed: z
    .string()
    .max(256 * 1024)
    .nullable(),
  refused: z.array(z.strictObject({ audience: text, reason: text })).max(100),
});

export function downstreamToWire(
  one: SubmittedDownstream,
): MessageInitShape<typeof DownstreamSchema> {
  return { ...one, sealed: one.sealed ?? undefined };
}

export function downstreamFromWire(message: Downstream): SubmittedDownstream {
  const { issuer, subject, audiences, sealed = null } = message;
  const refused = message.refused.map(({ audience, reason }) => ({ audience, reason }));
  return parse(downstream, { issuer, subject, audiences, sealed, refused });
}

export function attemptTokensToWire({
  tokens,
  refused,
  renewInMs,
}: AttemptTokens): MessageInitShape<typeof AttemptTokensResponseSchema> {
  return {
    tokens: tokens.map((one) => ({ ...one, expiresAtMs: w.toBigint(one.expiresAtMs) })),
    refused,
    renewInMs: w.toBigint(renewInMs),
  };
}

export function attemptTokensFromWire(message: AttemptTokensResponse): AttemptTokens {
  return {
    tokens: message.tokens.map(({ audience, token, expiresAtMs }) => ({
      audience,
      token,
      expiresAtMs: w.toNumber(expiresAtMs),
    })),
    refused: message.refused.map(({ audience, reason }) => ({ audience, reason })),
    renewInMs: w.toNumber(message.renewInMs),
  };
}
