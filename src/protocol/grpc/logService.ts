/** The log calls of drover.v1.Coordinator: one page, and page after page. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { DroverError } from '../../lib/errors.ts';
import type { LogQuery } from '../coordinator.ts';
import type {
  Coordinator as CoordinatorService,
  ReadLogsRequest,
  StreamJobLogsRequest,
  StreamJobLogsResponseSchema,
} from '../gen/drover/v1/coordinator_pb.ts';
import { authenticate, callerKey, principalOf } from './caller.ts';
import { notNegative } from './check.ts';
import type { ServiceOptions } from './coordinatorService.ts';
import * as jobs from './jobMessages.ts';
import { bounded, type GrpcLimits } from './limits.ts';
import { toBigint, toNumber, toNumberOrNull } from './wire.ts';

/** A follower that leaves is noticed at once, and the read it waited for ends within this time. */
const FOLLOW_WAIT_MS = 800;

export function logMethods(
  options: ServiceOptions,
): Pick<ServiceImpl<typeof CoordinatorService>, 'readLogs' | 'streamJobLogs'> {
  const { coordinator, limits } = options;
  return {
    async readLogs(request, context) {
      const query = {
        ...logQuery(request),
        waitMs: heldFor(request.waitMs, limits),
        ...(request.metrics && { metrics: true }),
      };
      const page = await coordinator.readLogs(principalOf(context), request.job, query);
      return {
        records: page.records.map(jobs.logRecordToWire),
        next: toBigint(page.next),
        complete: page.complete,
      };
    },
    streamJobLogs: (request, context) => streamLogs(options, request, context),
  };
}

async function* streamLogs(
  { coordinator, limits, closing }: ServiceOptions,
  request: StreamJobLogsRequest,
  context: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof StreamJobLogsResponseSchema>> {
  const { principal = principalOf(context), gateway, token } = context.values.get(callerKey);
  const query = { ...logQuery(request), waitMs: request.follow ? FOLLOW_WAIT_MS : 0 };
  const signals = [context.signal, closing];
  const startedAt = performance.now();
  let checkedAt = startedAt;
  for (;;) {
    const now = performance.now();
    if (now - startedAt > limits.streamMs) throw streamTooLong(limits, query.after);
    if (!gateway && now - checkedAt > limits.recheckMs) {
      await authenticate(coordinator, token);
      checkedAt = now;
    }
    const read = coordinator.readLogs(principal, request.job, query);
    const page = await bounded(read, limits.unaryMs, signals);
    if (page.records.length > 0 || page.complete) {
      const records = page.records.map(jobs.logRecordToWire);
      yield { records, next: toBigint(page.next), complete: page.complete };
    }
    if (page.complete || (!request.follow && page.records.length === 0)) return;
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

type LogFields = Pick<ReadLogsRequest, 'after' | 'task' | 'sinceMs' | 'tailLines'>;

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
