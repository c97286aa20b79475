/** drover.v1.Coordinator on top of the contract: check, translate, call, translate back. */
import { createHash } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';
import type { JobSpec } from '../../model/job.ts';
import type { Coordinator, LogQuery } from '../coordinator.ts';
import { createToken } from '../fleet.ts';
import type { PageRequest, ReadLogsRequest } from '../gen/drover/v1/coordinator_pb.ts';
import type {
  Coordinator as CoordinatorService,
  StreamJobLogsRequest,
  StreamJobLogsResponseSchema,
} from '../gen/drover/v1/coordinator_pb.ts';
import { listJobsQuery, pageQuery, type PageQuery } from '../jobs.ts';
import { submitBatch } from '../jobSpec.ts';
import { authenticate, callerKey, principalOf, requireGateway } from './caller.ts';
import { notNegative, parse } from './check.ts';
import * as fleet from './fleetMessages.ts';
import * as jobs from './jobMessages.ts';
import { bounded, type GrpcLimits } from './limits.ts';
import { scheduleMethods } from './scheduleService.ts';
import { specFromWire } from './specMessages.ts';
import { toBigint, toNumber, toNumberOrNull, jobState, tokenKind } from './wire.ts';

/** A follower that leaves is noticed at once, and the read it waited for ends within this time. */
const FOLLOW_WAIT_MS = 800;

const idempotencyKey = z.string().min(1).max(255).optional();

export interface ServiceOptions {
  coordinator: Coordinator;
  limits: GrpcLimits;
  /** Aborted when the server stops: streams end. */
  closing: AbortSignal;
}

export function coordinatorService(
  options: ServiceOptions,
): ServiceImpl<typeof CoordinatorService> {
  return {
    ...jobMethods(options),
    ...historyMethods(options),
    ...fleetMethods(options),
    ...scheduleMethods(options.coordinator),
    ...gatewayMethods(options),
  };
}

type Methods<Name extends keyof ServiceImpl<typeof CoordinatorService>> = Pick<
  ServiceImpl<typeof CoordinatorService>,
  Name
>;

function jobMethods({
  coordinator,
  limits,
}: ServiceOptions): Methods<
  'submitJobs' | 'getJob' | 'listJobs' | 'cancelJob' | 'waitJob' | 'getQueue'
> {
  return {
    async submitJobs(request, context) {
      const specs = parse(submitBatch, { jobs: request.specs.map(specFromWire) }).jobs;
      const key = parse(idempotencyKey, request.idempotencyKey);
      const hash = request.bodyHash ?? (key === undefined ? null : hashOf(specs));
      return coordinator.submit(principalOf(context), {
        specs,
        idempotencyKey: key ?? null,
        bodyHash: hash,
      });
    },
    async getJob({ id }, context) {
      return { job: jobs.jobToWire(await coordinator.getJob(principalOf(context), id)) };
    },
    async listJobs(request, context) {
      const state = jobState.toWordOrNone(request.state);
      const query = parse(listJobsQuery, {
        ...pageFields(request.page),
        ...(state && { state }),
        ...(request.name !== undefined && { name: request.name }),
        ...(request.owner !== undefined && { owner: request.owner }),
      });
      const page = await coordinator.listJobs(principalOf(context), query);
      return { jobs: page.items.map(jobs.jobToWire), nextCursor: page.nextCursor ?? undefined };
    },
    async cancelJob({ id }, context) {
      return { job: jobs.jobToWire(await coordinator.cancelJob(principalOf(context), id)) };
    },
    async waitJob({ id, waitMs }, context) {
      const wait = heldFor(waitMs, limits);
      return { job: jobs.jobToWire(await coordinator.waitJob(principalOf(context), id, wait)) };
    },
    async getQueue(request, context) {
      const page = await coordinator.queue(principalOf(context), pageOf(request.page));
      const entries = page.items.map(jobs.queueEntryToWire);
      return { entries, nextCursor: page.nextCursor ?? undefined };
    },
  };
}

function historyMethods(
  options: ServiceOptions,
): Methods<
  'listTasks' | 'listAttempts' | 'listEvents' | 'listCheckpoints' | 'readLogs' | 'streamJobLogs'
> {
  const { coordinator, limits } = options;
  return {
    async listTasks({ job, page }, context) {
      const { items, nextCursor } = await coordinator.listTasks(
        principalOf(context),
        job,
        pageOf(page),
      );
      return { tasks: items.map(jobs.taskToWire), nextCursor: nextCursor ?? undefined };
    },
    async listAttempts({ job, page }, context) {
      const { items, nextCursor } = await coordinator.listAttempts(
        principalOf(context),
        job,
        pageOf(page),
      );
      return { attempts: items.map(jobs.attemptToWire), nextCursor: nextCursor ?? undefined };
    },
    async listEvents({ job, page }, context) {
      const { items, nextCursor } = await coordinator.listEvents(
        principalOf(context),
        job,
        pageOf(page),
      );
      return { events: items.map(jobs.eventToWire), nextCursor: nextCursor ?? undefined };
    },
    async listCheckpoints({ job, page }, context) {
      const { items, nextCursor } = await coordinator.listCheckpoints(
        principalOf(context),
        job,
        pageOf(page),
      );
      return {
        checkpoints: items.map(jobs.checkpointToWire),
        nextCursor: nextCursor ?? undefined,
      };
    },
    async readLogs(request, context) {
      const query = { ...logQuery(request), waitMs: heldFor(request.waitMs, limits) };
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

function fleetMethods({
  coordinator,
}: ServiceOptions): Methods<
  | 'getCluster'
  | 'listWorkers'
  | 'setDraining'
  | 'listTokens'
  | 'createToken'
  | 'revokeToken'
  | 'readiness'
> {
  return {
    async getCluster(_request, context) {
      return { cluster: fleet.clusterToWire(await coordinator.cluster(principalOf(context))) };
    },
    async listWorkers(request, context) {
      const page = await coordinator.listWorkers(principalOf(context), pageOf(request.page));
      const workers = page.items.map(fleet.workerToWire);
      return { workers, nextCursor: page.nextCursor ?? undefined };
    },
    async setDraining({ worker, draining }, context) {
      const changed = await coordinator.setDraining(principalOf(context), worker, draining);
      return { worker: fleet.workerToWire(changed) };
    },
    async listTokens(request, context) {
      const page = await coordinator.listTokens(principalOf(context), pageOf(request.page));
      const tokens = page.items.map(fleet.tokenToWire);
      return { tokens, nextCursor: page.nextCursor ?? undefined };
    },
    async createToken(request, context) {
      const expiresInMs = toNumberOrNull(request.expiresInMs);
      const wanted = parse(createToken, {
        kind: tokenKind.toWordOrNone(request.kind),
        name: request.name,
        ...(request.user !== undefined && { user: request.user }),
        scopes: request.scopes,
        pool: request.pool,
        maxLiveWorkers: request.maxLiveWorkers,
        ...(expiresInMs !== null && { expiresInMs }),
      });
      return {
        token: fleet.tokenToWire(await coordinator.createToken(principalOf(context), wanted)),
      };
    },
    async revokeToken({ id }, context) {
      return { token: fleet.tokenToWire(await coordinator.revokeToken(principalOf(context), id)) };
    },
    async readiness() {
      return fleet.readinessToWire(await coordinator.readiness());
    },
  };
}

function gatewayMethods({
  coordinator,
}: ServiceOptions): Methods<'authenticate' | 'registerGateway' | 'openTunnel' | 'metrics'> {
  return {
    async authenticate({ secret }) {
      return { principal: await coordinator.authenticate(secret) };
    },
    async registerGateway({ url, leaseMs }) {
      await coordinator.registerGateway(url, toNumber(leaseMs));
      return {};
    },
    async openTunnel({ task, gatewayUrl }, context) {
      // Otherwise any user could have an agent dial any address.
      requireGateway(context.values.get(callerKey));
      return coordinator.openTunnel(principalOf(context), task, gatewayUrl);
    },
    async metrics(_request, context) {
      const { gateway, principal } = context.values.get(callerKey);
      if (!gateway && !principal?.scopes.includes('fleet:read')) {
        throw new DroverError('PERMISSION_DENIED', 'the token lacks the scope fleet:read');
      }
      return { text: await coordinator.metrics() };
    },
  };
}

function pageFields(page: PageRequest | undefined): { cursor?: string; limit?: number } {
  return {
    ...(page?.cursor !== undefined && { cursor: page.cursor }),
    ...(page && page.limit !== 0 && { limit: page.limit }),
  };
}

function pageOf(page: PageRequest | undefined): PageQuery {
  return parse(pageQuery, pageFields(page));
}

/** For clients that send a key and no hash. Maps have no order on the wire, so theirs is sorted. */
function hashOf(specs: JobSpec[]): string {
  const body = specs.map((spec) => [spec, sorted(spec.env), sorted(spec.labels)]);
  const text = JSON.stringify(body, (key, value) =>
    key === 'env' || key === 'labels' ? undefined : value,
  );
  return createHash('sha256').update(text).digest('hex');
}

function sorted(map: Record<string, string>): string[][] {
  return Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1));
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

function heldFor(waitMs: bigint, limits: GrpcLimits): number {
  return Math.min(notNegative(toNumber(waitMs), 'wait_ms'), limits.heldMs);
}
