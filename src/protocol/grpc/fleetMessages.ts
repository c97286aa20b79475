/** Workers, tokens, principals and the cluster between our types and the generated ones. */
import type { HealthSeverity } from '../../model/health.ts';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { JobId, TokenId } from '../../model/ids.ts';
import type { Device } from '../../model/resources.ts';
import type { Principal } from '../../model/token.ts';
import type { LoopHealth, Readiness } from '../coordinator.ts';
import type { ClusterView, TokenView, WorkerView } from '../fleet.ts';
import type {
  ReadinessResponse,
  ReadinessResponseSchema,
} from '../gen/drover/v1/coordinator_pb.ts';
import type * as wire from '../gen/drover/v1/fleet_pb.ts';
import * as w from './wire.ts';

type Capacity = WorkerView['total'];

export function deviceToWire(device: Device): MessageInitShape<typeof wire.DeviceSchema> {
  return {
    ...device,
    kind: w.deviceKind.toWire(device.kind),
    memoryBytes: w.toBigint(device.memoryBytes),
  };
}

export function deviceFromWire(message: wire.Device): Device {
  return {
    index: message.index,
    kind: w.deviceKind.toWord(message.kind),
    model: message.model,
    memoryBytes: w.toNumber(message.memoryBytes),
  };
}

export function workerToWire(worker: WorkerView): MessageInitShape<typeof wire.WorkerSchema> {
  return {
    ...worker,
    state: w.workerState.toWire(worker.state),
    joinedAtMs: w.toBigint(worker.joinedAtMs),
    lastSeenAtMs: w.toBigintOrNone(worker.lastSeenAtMs),
    total: capacityToWire(worker.total),
    free: capacityToWire(worker.free),
    devices: worker.devices.map(deviceToWire),
    instance: worker.instance ?? undefined,
    endsAtMs: w.toBigintOrNone(worker.endsAtMs),
  };
}

export function workerFromWire(sent: wire.Worker | undefined): WorkerView {
  const message = w.need(sent, 'worker');
  return {
    id: message.id,
    name: message.name,
    pool: message.pool,
    state: w.workerState.toWord(message.state),
    draining: message.draining,
    address: message.address,
    network: message.network,
    attributes: { ...message.attributes },
    agentVersion: message.agentVersion,
    joinedAtMs: w.toNumber(message.joinedAtMs),
    lastSeenAtMs: w.toNumberOrNull(message.lastSeenAtMs),
    attempts: message.attempts,
    total: capacityFromWire(message.total),
    free: capacityFromWire(message.free),
    devices: message.devices.map(deviceFromWire),
    host: message.host,
    instance: message.instance ?? null,
    endsAtMs: w.toNumberOrNull(message.endsAtMs),
    problems: message.problems.map(({ check, severity, message: said, device }) => ({
      ...{ check, severity: severity as HealthSeverity, message: said },
      ...(device !== undefined && { device }),
    })),
  };
}

function capacityToWire(capacity: Capacity): MessageInitShape<typeof wire.CapacitySchema> {
  return {
    cpuMillis: w.toBigint(capacity.cpuMillis),
    memoryBytes: w.toBigint(capacity.memoryBytes),
    devices: capacity.devices,
  };
}

function capacityFromWire(sent: wire.Capacity | undefined): Capacity {
  const message = w.need(sent, 'capacity');
  return {
    cpuMillis: w.toNumber(message.cpuMillis),
    memoryBytes: w.toNumber(message.memoryBytes),
    devices: message.devices,
  };
}

export function tokenToWire(token: TokenView): MessageInitShape<typeof wire.TokenSchema> {
  return {
    ...token,
    kind: w.tokenKind.toWire(token.kind),
    createdAtMs: w.toBigint(token.createdAtMs),
    expiresAtMs: w.toBigintOrNone(token.expiresAtMs),
    revokedAtMs: w.toBigintOrNone(token.revokedAtMs),
    lastUsedAtMs: w.toBigintOrNone(token.lastUsedAtMs),
    attempt: token.attempt ?? undefined,
  };
}

export function tokenFromWire(sent: wire.Token | undefined): TokenView {
  const message = w.need(sent, 'token');
  return {
    id: message.id,
    kind: w.tokenKind.toWord(message.kind),
    name: message.name,
    tenant: message.tenant,
    user: message.user,
    scopes: w.knownScopes(message.scopes),
    pool: message.pool,
    maxLiveWorkers: message.maxLiveWorkers,
    createdAtMs: w.toNumber(message.createdAtMs),
    expiresAtMs: w.toNumberOrNull(message.expiresAtMs),
    revokedAtMs: w.toNumberOrNull(message.revokedAtMs),
    lastUsedAtMs: w.toNumberOrNull(message.lastUsedAtMs),
    attempt: message.attempt ?? null,
    ...(message.secret !== undefined && { secret: message.secret }),
  };
}

export function principalFromWire(message: wire.Principal): Principal {
  return {
    token: message.token as TokenId,
    tenant: message.tenant,
    user: message.user,
    scopes: w.knownScopes(message.scopes),
    ...(message.job !== undefined && { job: message.job as JobId }),
    ...identityOf(message),
  };
}

export function principalToWire({
  identity,
  ...principal
}: Principal): MessageInitShape<typeof wire.PrincipalSchema> {
  return { ...principal, ...identity };
}

function identityOf({ issuer, subject }: wire.Principal): Pick<Principal, 'identity'> {
  return issuer === undefined || subject === undefined ? {} : { identity: { issuer, subject } };
}

export function clusterToWire(cluster: ClusterView): MessageInitShape<typeof wire.ClusterSchema> {
  return {
    ...cluster,
    epoch: w.toBigint(cluster.epoch),
    startedAtMs: w.toBigint(cluster.startedAtMs),
    store: w.storeKind.toWire(cluster.store),
    attemptLeaseMs: w.toBigint(cluster.attemptLeaseMs),
  };
}

export function clusterFromWire(sent: wire.Cluster | undefined): ClusterView {
  const message = w.need(sent, 'cluster');
  const workers = w.need(message.workers, 'cluster.workers');
  const tasks = w.need(message.tasks, 'cluster.tasks');
  return {
    id: message.id,
    name: message.name,
    version: message.version,
    epoch: w.toNumber(message.epoch),
    startedAtMs: w.toNumber(message.startedAtMs),
    store: w.storeKind.toWord(message.store),
    workers: { online: workers.online, suspect: workers.suspect, draining: workers.draining },
    tasks: { pending: tasks.pending, assigned: tasks.assigned, running: tasks.running },
    attemptLeaseMs: w.toNumber(message.attemptLeaseMs),
  };
}

export function readinessToWire(
  readiness: Readiness,
): MessageInitShape<typeof ReadinessResponseSchema> {
  return { ...readiness, loops: readiness.loops.map(loopToWire) };
}

function loopToWire(loop: LoopHealth): MessageInitShape<typeof wire.LoopHealthSchema> {
  return {
    ...loop,
    periodMs: w.toBigint(loop.periodMs),
    lastStartedAtMs: w.toBigintOrNone(loop.lastStartedAtMs),
    lastFinishedAtMs: w.toBigintOrNone(loop.lastFinishedAtMs),
    failures: w.toBigint(loop.failures),
    lastError: loop.lastError ?? undefined,
  };
}

export function readinessFromWire(message: ReadinessResponse): Readiness {
  return {
    ready: message.ready,
    reasons: message.reasons,
    loops: message.loops.map((loop) => ({
      name: loop.name,
      periodMs: w.toNumber(loop.periodMs),
      lastStartedAtMs: w.toNumberOrNull(loop.lastStartedAtMs),
      lastFinishedAtMs: w.toNumberOrNull(loop.lastFinishedAtMs),
      failures: w.toNumber(loop.failures),
      lastError: loop.lastError ?? null,
      healthy: loop.healthy,
    })),
  };
}
