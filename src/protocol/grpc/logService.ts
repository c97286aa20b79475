/** The log calls of drover.v1.Coordinator: one page, and page after page. */
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { DroverError } from '../../lib/errors.ts';
import type { LogQuery } from '../coordinator.ts';
import type {
  Coordinator as CoordinatorService,
  ReadLogsRequest,
} from '../gen/drover/v1/coordinator_pb.ts';
import { authenticate, callerKey, principalOf } from './caller.ts';
import { notNegative } from './check.ts';
import type { ServiceOptions } from './coordinatorService.ts';
import * as jobs from './jobMessages.ts';
import { bounded, type GrpcLimits } from './limits.ts';
import { toNumber, toNumberOrNull } from './wire.ts';

/** A follower that leaves is noticed at once, and the read it waited for ends within this time. */
const FOLLOW_WAIT_MS = 10_000;

export function logMethods(
  options: ServiceOptions,
): Pick<ServiceImpl<typeof CoordinatorService>, 'readLogs' | 'streamJobLogs' | 'streamJobMetrics'> {
  const { coordinator, limits } = options;
  return {
    async readLogs(request, context) {
      const query = {
        ...logQuery(request),
        waitMs: heldFor(request.waitMs, limits),
        ...(request.metrics && { metrics: true }),
      };
      const page = await coordinator.readLogs(principalOf(context), request.job, query);
      return jobs.logPageToWire(page);
    },
    streamJobLogs: (request, context) => streamPages(options, streamOf(request), context),
    streamJobMetrics: (request, context) =>
      streamPages(options, { ...streamOf(request), metrics: true }, context),
  };
}

type StreamFields = LogFields & { job: string; follow: boolean };
type StreamRequest = Omit<LogQuery, 'waitMs'> & { job: string; follow: boolean };

function streamOf(request: StreamFields): StreamRequest {
  return { job: request.job, follow: request.follow, ...logQuery(request) };
}

async function* streamPages(
  { coordinator, limits, closing }: ServiceOptions,
  { job, follow, ...wanted }: StreamRequest,
  context: HandlerContext,
): AsyncGenerator<ReturnType<typeof jobs.logPageToWire>> {
  const { principal = principalOf(context), gateway, token } = context.values.get(callerKey);
  const waitMs = gateway ? FOLLOW_WAIT_MS : Math.min(FOLLOW_WAIT_MS, limits.recheckMs);
  // The first page is not waited for: it tells the caller that the stream was accepted.
  const query: LogQuery = { ...wanted, waitMs: 0 };
  const signals = [context.signal, closing];
  const startedAt = performance.now();
  let checkedAt = startedAt;
  for (let isFirst = true; ; isFirst = false) {
    const now = performance.now();
    if (now - startedAt > limits.streamMs) throw streamTooLong(limits, query.after);
    if (!gateway && now - checkedAt > limits.recheckMs) {
      await authenticate(coordinator, token);
      checkedAt = now;
    }
    const read = coordinator.readLogs(principal, job, query);
    const page = await bounded(read, limits.unaryMs, signals);
    const isMore = page.records.length > 0 || page.next > query.after || page.complete;
    if (isFirst || isMore) yield jobs.logPageToWire(page);
    if (page.complete || (!follow && page.records.length === 0)) return;
    if (follow) query.waitMs = waitMs;
    query.after = page.next;
    // The tail is where reading starts; from there on everything is wanted.
    if (query.after > 0) delete query.tailLines;
  }
}

function streamTooLong(limits: GrpcLimits, after: number): DroverError {
  return new DroverError('TIMEOUT', `a stream may last ${limits.streamMs} ms`, {
    hint: `Call again with after = ${after}.`,
  });
}

type LogFields = Pick<ReadLogsRequest, 'after' | 'task' | 'sinceMs'> & {
  tailLines?: number | undefined;
};

function logQuery(request: LogFields): Omit<LogQuery, 'waitMs'> {
  const sinceMs = toNumberOrNull(request.sinceMs);
  return {
    after: notNegative(toNumber(request.after), 'after'),
    ...(request.task !== undefined && { task: notNegative(request.task, 'task') }),
    ...(sinceMs !== null && { sinceMs }),
    ...(request.tailLines !== undefined && {
      tailLines: notNegative(request.tailLines, 'tail_lines'),
    }),
  };
}

export function heldFor(waitMs: bigint, limits: GrpcLimits): number {
  return Math.min(notNegative(toNumber(waitMs), 'wait_ms'), limits.heldMs);
}
