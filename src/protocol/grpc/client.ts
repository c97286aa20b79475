/** A Coordinator that is somewhere else: the contract over gRPC, for gateways and command line. */
import type { Principal } from '../../model/token.ts';
import type { Coordinator, LogFollower, Page, SubmitReply, SubmitRequest } from '../coordinator.ts';
import type { JobView } from '../jobs.ts';
import { agentCalls } from './agentCalls.ts';
import { auditCalls } from './auditCalls.ts';
import {
  connect,
  WAIT_PIECE_MS,
  type Connection,
  type GrpcCoordinatorOptions,
} from './connection.ts';
import * as fleet from './fleetMessages.ts';
import * as jobs from './jobMessages.ts';
import { logCalls } from './logCalls.ts';
import { checkpointCalls } from './checkpointCalls.ts';
import { dataCalls } from './dataCalls.ts';
import { downstreamToWire } from './downstreamMessages.ts';
import { policyCalls } from './policyMessages.ts';
import { poolCalls } from './poolCalls.ts';
import { scheduleCalls } from './scheduleCalls.ts';
import { tenantCalls } from './tenantCalls.ts';
import { specToWire } from './specMessages.ts';
import * as w from './wire.ts';

export type GrpcCoordinator = Coordinator & LogFollower & { close(): void };

export function createGrpcCoordinator(options: GrpcCoordinatorOptions): GrpcCoordinator {
  const connection = connect(options);
  return {
    ...jobCalls(connection),
    ...fleetCalls(connection),
    ...checkpointCalls(connection),
    ...scheduleCalls(connection),
    ...dataCalls(connection),
    ...policyCalls(connection),
    ...auditCalls(connection),
    ...tenantCalls(connection),
    ...poolCalls(connection),
    ...agentCalls(connection),
    ...gatewayCalls(connection),
    ...logCalls(connection),
    close: () => connection.close(),
  };
}

type Part<Name extends keyof Coordinator> = Pick<Coordinator, Name>;

function jobCalls(
  connection: Connection,
): Part<
  | 'submit'
  | 'getJob'
  | 'listJobs'
  | 'cancelJob'
  | 'setPriority'
  | 'listTasks'
  | 'listAttempts'
  | 'listEvents'
  | 'waitJob'
> {
  const { coordinator, call, by } = connection;
  return {
    submit: (who, request) => submit(connection, who, request),
    getJob: (who, id) =>
      call(
        by(who),
        (options) => coordinator.getJob({ id }, options),
        ({ job }) => jobs.jobFromWire(job),
      ),
    async listJobs(who, { state, name, owner, parent, ...page }) {
      const request = { page, state: w.jobState.toWireOrNone(state), name, owner, parent };
      return call(
        by(who),
        (options) => coordinator.listJobs(request, options),
        (response) => pageOf(response.jobs.map(jobs.jobFromWire), response.nextCursor),
      );
    },
    cancelJob: (who, id) =>
      call(
        by(who),
        (options) => coordinator.cancelJob({ id }, options),
        ({ job }) => jobs.jobFromWire(job),
      ),
    setPriority: (who, id, priority) =>
      call(
        by(who),
        (options) =>
          coordinator.setJobPriority({ id, priority: w.priority.toWire(priority) }, options),
        ({ job }) => jobs.jobFromWire(job),
      ),
    listTasks: (who, job, page) =>
      call(
        by(who),
        (options) => coordinator.listTasks({ job, page }, options),
        (response) => pageOf(response.tasks.map(jobs.taskFromWire), response.nextCursor),
      ),
    listAttempts: (who, job, { task, ...page }) =>
      call(
        by(who),
        (options) => coordinator.listAttempts({ job, page, task }, options),
        (response) => pageOf(response.attempts.map(jobs.attemptFromWire), response.nextCursor),
      ),
    listEvents: (who, job, page) =>
      call(
        by(who),
        (options) => coordinator.listEvents({ job, page }, options),
        (response) => pageOf(response.events.map(jobs.eventFromWire), response.nextCursor),
      ),
    waitJob: (who, id, waitMs) => waitJob(connection, who, id, waitMs),
  };
}

/** One job is what most send, and what a coordinator of others is sure to take. */
async function submit(
  { coordinator, call, by }: Connection,
  who: Principal,
  { specs, ...sent }: SubmitRequest,
): Promise<SubmitReply> {
  const common = {
    idempotencyKey: sent.idempotencyKey ?? undefined,
    bodyHash: sent.bodyHash ?? undefined,
    downstream: sent.downstream && downstreamToWire(sent.downstream),
  };
  // Who calls is said last: no token takes its place.
  const metadata = { ...sent.downstreamTokens, ...by(who) };
  const [spec, ...others] = specs.map(specToWire);
  if (spec && others.length === 0) {
    return call(
      metadata,
      (options) => coordinator.submitJob({ ...common, spec }, options),
      ({ id, replayed }) => ({ ids: [id], replayed }),
    );
  }
  return call(
    metadata,
    (options) => coordinator.submitJobs({ ...common, specs: specs.map(specToWire) }, options),
    ({ ids, replayed }) => ({ ids, replayed }),
  );
}

async function waitJob(
  { coordinator, call, by }: Connection,
  who: Principal,
  id: string,
  waitMs: number,
): Promise<JobView> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const left = Math.max(0, Math.ceil(deadline - performance.now()));
    const piece = Math.min(left, WAIT_PIECE_MS);
    const job = await call(
      by(who),
      (options) => coordinator.waitJob({ id, waitMs: w.toBigint(piece) }, options),
      (response) => jobs.jobFromWire(response.job),
      piece,
    );
    if (job.endedAtMs !== null || performance.now() >= deadline) return job;
  }
}

function fleetCalls({
  coordinator,
  call,
  by,
}: Connection): Part<
  | 'queue'
  | 'cluster'
  | 'listWorkers'
  | 'setDraining'
  | 'revokeWorker'
  | 'listTokens'
  | 'createToken'
  | 'revokeToken'
> {
  return {
    cluster: (who) =>
      call(
        by(who),
        (options) => coordinator.getCluster({}, options),
        ({ cluster }) => fleet.clusterFromWire(cluster),
      ),
    queue: (who, page) =>
      call(
        by(who),
        (options) => coordinator.getQueue({ page }, options),
        (response) => pageOf(response.entries.map(jobs.queueEntryFromWire), response.nextCursor),
      ),
    listWorkers: (who, page) =>
      call(
        by(who),
        (options) => coordinator.listWorkers({ page }, options),
        (response) => pageOf(response.workers.map(fleet.workerFromWire), response.nextCursor),
      ),
    setDraining: (who, worker, draining) =>
      call(
        by(who),
        (options) => coordinator.setDraining({ worker, draining }, options),
        (response) => fleet.workerFromWire(response.worker),
      ),
    revokeWorker: (who, worker) =>
      call(
        by(who),
        (options) => coordinator.revokeWorker({ worker }, options),
        (response) => fleet.workerFromWire(response.worker),
      ),
    listTokens: (who, page) =>
      call(
        by(who),
        (options) => coordinator.listTokens({ page }, options),
        (response) => pageOf(response.tokens.map(fleet.tokenFromWire), response.nextCursor),
      ),
    async createToken(who, wanted) {
      const request = {
        ...wanted,
        kind: w.tokenKind.toWire(wanted.kind),
        expiresInMs: w.toBigintOrNone(wanted.expiresInMs),
      };
      return call(
        by(who),
        (options) => coordinator.createToken(request, options),
        ({ token }) => fleet.tokenFromWire(token),
      );
    },
    revokeToken: (who, id) =>
      call(
        by(who),
        (options) => coordinator.revokeToken({ id }, options),
        ({ token }) => fleet.tokenFromWire(token),
      ),
  };
}

function gatewayCalls({
  coordinator,
  call,
  by,
}: Connection): Part<'authenticate' | 'registerGateway' | 'openTunnel' | 'readiness' | 'metrics'> {
  return {
    authenticate: (secret) =>
      call(
        {},
        (options) => coordinator.authenticate({ secret }, options),
        ({ principal }) => principal && fleet.principalFromWire(principal),
      ),
    registerGateway: (url, leaseMs) =>
      call(
        {},
        (options) => coordinator.registerGateway({ url, leaseMs: w.toBigint(leaseMs) }, options),
        () => undefined,
      ),
    openTunnel: (who, task, gatewayUrl) =>
      call(
        by(who),
        (options) => coordinator.openTunnel({ task, gatewayUrl }, options),
        ({ ticketHash, worker, attempt }) => ({ ticketHash, worker, attempt }),
      ),
    readiness: () =>
      call({}, (options) => coordinator.readiness({}, options), fleet.readinessFromWire),
    metrics: () =>
      call(
        {},
        (options) => coordinator.metrics({}, options),
        ({ text }) => text,
      ),
  };
}

function pageOf<Item>(items: Item[], nextCursor: string | undefined): Page<Item> {
  return { items, nextCursor: nextCursor ?? null };
}
