/** Around every call: who calls, its request id, its time limit and the form of its errors. */
import type { HandlerContext, Interceptor } from '@connectrpc/connect';
import type { Log } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { Coordinator } from '../coordinator.ts';
import { Agent } from '../gen/drover/v1/agent_pb.ts';
import { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { callerKey, identify, METADATA } from './caller.ts';
import { toConnectError } from './errors.ts';
import { bounded, type GrpcLimits } from './limits.ts';

/** These wait for something to happen; when the server stops, their clients ask again elsewhere. */
const HELD: ReadonlySet<unknown> = new Set([
  CoordinatorService.method.waitJob,
  CoordinatorService.method.readLogs,
  Agent.method.sync,
]);

export interface GateOptions {
  coordinator: Coordinator;
  apiSecret: string | undefined;
  log: Log;
  random: Random;
}

/** Runs before the body is read, so that a stranger cannot make the server read a large one. */
export function gate({ coordinator, apiSecret, log, random }: GateOptions) {
  return async (context: HandlerContext): Promise<void> => {
    const requestId = requestIdOf(context.requestHeader, random);
    context.requestHeader.set(METADATA.requestId, requestId);
    context.responseHeader.set(METADATA.requestId, requestId);
    try {
      context.values.set(callerKey, await identify(context, coordinator, apiSecret));
    } catch (error) {
      throw toConnectError(error, requestId, log);
    }
  };
}

/** The caller's own when it can be printed, so that both sides' logs can be joined. */
function requestIdOf(headers: Headers, random: Random): string {
  const sent = headers.get(METADATA.requestId) ?? '';
  return /^[\w.:-]{1,128}$/.test(sent) ? sent : random.hex(8);
}

export interface GuardOptions {
  limits: GrpcLimits;
  closing: AbortSignal;
  log: Log;
}

export function limitOf(method: unknown, limits: GrpcLimits): { limitMs: number; isHeld: boolean } {
  const isHeld = HELD.has(method);
  return { limitMs: isHeld ? limits.heldMs + limits.unaryMs : limits.unaryMs, isHeld };
}

export function guard({ limits, closing, log }: GuardOptions): Interceptor {
  return (next) => async (request) => {
    const requestId = request.header.get(METADATA.requestId) ?? '';
    const { limitMs, isHeld } = limitOf(request.method, limits);
    const signals = isHeld ? [request.signal, closing] : [request.signal];
    try {
      const response = await bounded(next(request), limitMs, signals);
      if (!response.stream) return response;
      return { ...response, message: guardStream(response.message, requestId, log) };
    } catch (error) {
      throw toConnectError(error, requestId, log);
    }
  };
}

async function* guardStream<Message>(
  messages: AsyncIterable<Message>,
  requestId: string,
  log: Log,
): AsyncGenerator<Message> {
  try {
    yield* messages;
  } catch (error) {
    throw toConnectError(error, requestId, log);
  }
}
