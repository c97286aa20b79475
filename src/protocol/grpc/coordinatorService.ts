/** drover.v1.Coordinator on top of the contract: check, translate, call, translate back. */
import type { ServiceImpl } from '@connectrpc/connect';
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';
import { PRIORITIES } from '../../model/job.ts';
import type { Coordinator } from '../coordinator.ts';
import { createToken } from '../fleet.ts';
import type { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { listJobsQuery } from '../jobs.ts';
import { callerKey, principalOf, requireGateway } from './caller.ts';
import { parse } from './check.ts';
import * as fleet from './fleetMessages.ts';
import * as jobs from './jobMessages.ts';
import type { GrpcLimits } from './limits.ts';
import { auditMethods } from './auditService.ts';
import { heldFor, logMethods } from './logService.ts';
import { pageFields, pageOf, taskPageOf } from './paging.ts';
import { dataMethods } from './dataService.ts';
import { policyMethods } from './policyMessages.ts';
import { poolMethods } from './poolService.ts';
import { scheduleMethods } from './scheduleService.ts';
import { tenantMethods } from './tenantService.ts';
import { submitMethods } from './submitService.ts';
import { toNumber, toNumberOrNull, jobState, tokenKind } from './wire.ts';
import { priority as priorities } from './wire.ts';

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
    ...submitMethods(options.coordinator),
    ...jobMethods(options),
    ...historyMethods(options),
    ...logMethods(options),
    ...auditMethods(options),
    ...fleetMethods(options),
    ...scheduleMethods(options.coordinator),
    ...dataMethods(options.coordinator),
    ...policyMethods(options.coordinator),
    ...tenantMethods(options),
    ...poolMethods(options.coordinator),
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
  'getJob' | 'listJobs' | 'cancelJob' | 'setJobPriority' | 'waitJob' | 'getQueue'
> {
  return {
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
        ...(request.parent !== undefined && { parent: request.parent }),
      });
      const page = await coordinator.listJobs(principalOf(context), query);
      return { jobs: page.items.map(jobs.jobToWire), nextCursor: page.nextCursor ?? undefined };
    },
    async cancelJob({ id }, context) {
      return { job: jobs.jobToWire(await coordinator.cancelJob(principalOf(context), id)) };
    },
    async setJobPriority({ id, priority }, context) {
      const band = parse(z.enum(PRIORITIES), priorities.toWordOrNone(priority));
      const view = await coordinator.setPriority(principalOf(context), id, band);
      return { job: jobs.jobToWire(view) };
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

function historyMethods({
  coordinator,
}: ServiceOptions): Methods<
  'listTasks' | 'listAttempts' | 'listEvents' | 'listCheckpoints' | 'requestCheckpoint'
> {
  return {
    async listTasks({ job, page }, context) {
      const { items, nextCursor } = await coordinator.listTasks(
        principalOf(context),
        job,
        pageOf(page),
      );
      return { tasks: items.map(jobs.taskToWire), nextCursor: nextCursor ?? undefined };
    },
    async listAttempts({ job, page, task }, context) {
      const { items, nextCursor } = await coordinator.listAttempts(
        principalOf(context),
        job,
        taskPageOf(page, task),
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
    async requestCheckpoint({ job, task }, context) {
      const which = task === undefined ? [] : [task];
      const who = principalOf(context);
      return { tasks: await coordinator.requestCheckpoint(who, job, ...which) };
    },
    async listCheckpoints({ job, page, task }, context) {
      const { items, nextCursor } = await coordinator.listCheckpoints(
        principalOf(context),
        job,
        taskPageOf(page, task),
      );
      return {
        checkpoints: items.map(jobs.checkpointToWire),
        nextCursor: nextCursor ?? undefined,
      };
    },
  };
}

function fleetMethods({
  coordinator,
}: ServiceOptions): Methods<
  | 'getCluster'
  | 'listWorkers'
  | 'setDraining'
  | 'revokeWorker'
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
    async revokeWorker({ worker }, context) {
      const changed = await coordinator.revokeWorker(principalOf(context), worker);
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
        roles: request.roles,
        ...(request.tenant !== undefined && { tenant: request.tenant }),
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
      const principal = await coordinator.authenticate(secret);
      return { principal: principal && fleet.principalToWire(principal) };
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
