/** For whom a submission may ask for tokens of other services: for its caller, and nobody else. */
import { DroverError } from '../lib/errors.ts';
import type { SubmittedDownstream } from '../model/downstream.ts';
import type { Principal } from '../model/token.ts';
import type { SubmitRequest } from '../protocol/coordinator.ts';

/** Checked here too: whoever calls the gRPC listener with a token of their own is no gateway. */
export function downstreamOf(
  { identity }: Principal,
  { downstream }: SubmitRequest,
): { downstream?: SubmittedDownstream } {
  if (!downstream) return {};
  if (identity?.issuer === downstream.issuer && identity.subject === downstream.subject) {
    return { downstream };
  }
  throw new DroverError('PERMISSION_DENIED', 'tokens can be asked for in your own name only');
}
