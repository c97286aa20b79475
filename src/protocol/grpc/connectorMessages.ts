/** What connectors bring and fetch, between our types and the generated ones. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { DroverError } from '../../lib/errors.ts';
import type { ConnectorResult } from '../../model/connector.ts';
import type { ExchangeReply, ExchangeRequest } from '../connector.ts';
import type * as wire from '../gen/drover/v1/agent_pb.ts';
import * as w from './wire.ts';

export function requestToWire({
  results,
  ...request
}: ExchangeRequest): MessageInitShape<typeof wire.ExchangeCommandsRequestSchema> {
  return { ...request, results: results.map(resultToWire) };
}

export function requestFromWire(message: wire.ExchangeCommandsRequest): ExchangeRequest {
  const { site, connector, results, wait } = message;
  return { site, connector, results: results.map(resultFromWire), wait };
}

export function replyToWire({
  commands,
}: ExchangeReply): MessageInitShape<typeof wire.ExchangeCommandsResponseSchema> {
  return {
    commands: commands.map((one) => ({ ...one, timeoutMs: w.toBigint(one.timeoutMs) })),
  };
}

export function replyFromWire(message: wire.ExchangeCommandsResponse): ExchangeReply {
  return {
    commands: message.commands.map(({ id, argv, stdin, timeoutMs }) => ({
      ...{ id, argv, stdin },
      timeoutMs: w.toNumber(timeoutMs),
    })),
  };
}

function resultToWire(one: ConnectorResult): MessageInitShape<typeof wire.CommandResultSchema> {
  const { id } = one;
  if (one.kind === 'lost') return { id, outcome: { case: 'lost', value: one.reason } };
  if (one.kind === 'not-started') return { id, outcome: { case: 'notStarted', value: one.reason } };
  const { code, stdout, stderr } = one;
  return { id, outcome: { case: 'ended', value: { code, stdout, stderr } } };
}

function resultFromWire({ id, outcome }: wire.CommandResult): ConnectorResult {
  if (outcome.case === 'lost') return { id, kind: 'lost', reason: outcome.value };
  if (outcome.case === 'notStarted') return { id, kind: 'not-started', reason: outcome.value };
  if (outcome.case === 'ended') {
    const { code, stdout, stderr } = outcome.value;
    return { id, kind: 'ended', code, stdout, stderr };
  }
  throw new DroverError('INVALID_ARGUMENT', `the result of ${id} says nothing of its outcome`);
}
