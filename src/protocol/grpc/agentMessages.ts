/** Join, sync and log chunks between our types and the generated ones. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  AttemptAccess,
  CheckpointReport,
  JoinReply,
  JoinRequest,
  LogAck,
  LogChunk,
  Observation,
  StopOrder,
  SyncReply,
  SyncRequest,
  Timers,
} from '../agent.ts';
import type * as wire from '../gen/drover/v1/agent_pb.ts';
import { deviceFromWire, deviceToWire } from './fleetMessages.ts';
import { orderFromWire, orderToWire } from './orderMessages.ts';
import * as w from './wire.ts';

export function joinRequestToWire(
  request: JoinRequest,
): MessageInitShape<typeof wire.JoinRequestSchema> {
  const { cpuMillis, memoryBytes, devices, portRange } = request.resources;
  return {
    ...request,
    resources: {
      cpuMillis: w.toBigint(cpuMillis),
      memoryBytes: w.toBigint(memoryBytes),
      devices: devices.map(deviceToWire),
      firstPort: portRange[0],
      lastPort: portRange[1],
    },
  };
}

export function joinRequestFromWire(message: wire.JoinRequest): JoinRequest {
  const resources = w.need(message.resources, 'resources');
  return {
    name: message.name,
    machine: message.machine,
    bootId: message.bootId,
    address: message.address,
    network: message.network,
    agentVersion: message.agentVersion,
    capabilities: message.capabilities,
    attributes: { ...message.attributes },
    resources: {
      cpuMillis: w.toNumber(resources.cpuMillis),
      memoryBytes: w.toNumber(resources.memoryBytes),
      devices: resources.devices.map(deviceFromWire),
      portRange: [resources.firstPort, resources.lastPort],
    },
    ...(message.terms && {
      terms: {
        tenants: message.terms.tenants,
        interruptibleOnly: message.terms.interruptibleOnly,
      },
    }),
    ...(message.host !== undefined && { host: message.host }),
    ...(message.instance !== undefined && { instance: message.instance }),
    ...(message.fresh !== undefined && { fresh: message.fresh }),
  };
}

export function joinReplyToWire(
  reply: JoinReply,
): MessageInitShape<typeof wire.JoinResponseSchema> {
  return { ...reply, epoch: w.toBigint(reply.epoch), timers: timersToWire(reply.timers) };
}

export function joinReplyFromWire(message: wire.JoinResponse): JoinReply {
  return {
    worker: message.worker,
    token: message.token,
    clusterId: message.clusterId,
    epoch: w.toNumber(message.epoch),
    timers: timersFromWire(message.timers),
  };
}

function timersToWire(timers: Timers): MessageInitShape<typeof wire.TimersSchema> {
  return {
    workerLeaseMs: w.toBigint(timers.workerLeaseMs),
    attemptLeaseMs: w.toBigint(timers.attemptLeaseMs),
    killMarginMs: w.toBigint(timers.killMarginMs),
    longPollMs: w.toBigint(timers.longPollMs),
  };
}

function timersFromWire(sent: wire.Timers | undefined): Timers {
  const message = w.need(sent, 'timers');
  return {
    workerLeaseMs: w.toNumber(message.workerLeaseMs),
    attemptLeaseMs: w.toNumber(message.attemptLeaseMs),
    killMarginMs: w.toNumber(message.killMarginMs),
    longPollMs: w.toNumber(message.longPollMs),
  };
}

export function syncRequestToWire(
  request: SyncRequest,
): MessageInitShape<typeof wire.SyncRequestSchema> {
  return {
    ...request,
    start: w.toBigint(request.start),
    seq: w.toBigint(request.seq),
    epoch: w.toBigint(request.epoch),
    observed: request.observed.map(observationToWire),
    held: request.held && {
      inputs: request.held.map(({ hash, bytes }) => ({ hash, bytes: w.toBigint(bytes) })),
    },
  };
}

/** Not yet checked: the caller parses it with the agent protocol's schema. */
export function syncRequestFromWire(message: wire.SyncRequest): unknown {
  return {
    worker: message.worker,
    bootId: message.bootId,
    start: w.toNumber(message.start),
    seq: w.toNumber(message.seq),
    epoch: w.toNumber(message.epoch),
    observed: message.observed.map(observationFromWire),
    wait: message.wait,
    ...(message.held && {
      held: message.held.inputs.map(({ hash, bytes }) => ({ hash, bytes: w.toNumber(bytes) })),
    }),
    ...(message.health && {
      health: {
        problems: message.health.problems.map(({ check, severity, message: said, device }) => ({
          ...{ check, severity, message: said },
          ...(device !== undefined && { device }),
        })),
      },
    }),
  };
}

function observationToWire({
  result,
  facts,
  unstored,
  held,
  ...seen
}: Observation): MessageInitShape<typeof wire.ObservationSchema> {
  return {
    ...seen,
    state: w.attemptState.toWire(seen.state),
    cause: w.endCause.toWireOrNone(seen.cause),
    exitCode: seen.exitCode ?? undefined,
    signal: seen.signal ?? undefined,
    stdoutBytes: w.toBigintOrNone(seen.stdoutBytes),
    stderrBytes: w.toBigintOrNone(seen.stderrBytes),
    facts: facts ?? {},
    unstored: unstored ?? false,
    held: held ?? false,
    ...(result && { result: { ...result, bytes: w.toBigint(result.bytes) } }),
  };
}

/** Absent fields stay absent, also those that may be null: the schema reads both alike. */
function observationFromWire(message: wire.Observation): object {
  const cause = w.endCause.toWordOrNone(message.cause);
  const stdoutBytes = w.toNumberOrNull(message.stdoutBytes);
  const stderrBytes = w.toNumberOrNull(message.stderrBytes);
  return {
    uid: message.uid,
    state: w.attemptState.toWord(message.state),
    ...(cause !== undefined && { cause }),
    ...(message.exitCode !== undefined && { exitCode: message.exitCode }),
    ...(message.signal !== undefined && { signal: message.signal }),
    ...(message.message !== undefined && { message: message.message }),
    ...(message.hostFault !== undefined && { hostFault: message.hostFault }),
    ...(stdoutBytes !== null && { stdoutBytes }),
    ...(stderrBytes !== null && { stderrBytes }),
    ...(!isEmpty(message.facts) && { facts: { ...message.facts } }),
    ...(message.progress !== undefined && { progress: message.progress }),
    ...(message.result && {
      result: { manifest: message.result.manifest, bytes: w.toNumber(message.result.bytes) },
    }),
    ...(message.unstored && { unstored: true }),
    ...(message.held && { held: true }),
    ...(message.idle && { idle: { message: message.idle.message, stop: message.idle.stop } }),
  };
}

const isEmpty = (record: object): boolean => Object.keys(record).length === 0;

export function attemptAccessFromWire({
  tenant,
  job,
  task,
}: wire.AttemptAccessResponse): AttemptAccess | undefined {
  if (tenant === undefined || job === undefined || task === undefined) return undefined;
  return { tenant, job, task };
}

export function checkpointReportToWire(
  report: CheckpointReport,
): MessageInitShape<typeof wire.AddCheckpointRequestSchema> {
  const { bytes, takenBootMs } = report;
  return { ...report, bytes: w.toBigint(bytes), takenBootMs: w.toBigint(takenBootMs) };
}

export function checkpointReportFromWire(message: wire.AddCheckpointRequest): CheckpointReport {
  const { uid, manifest, files, reason } = message;
  const takenBootMs = w.toNumber(message.takenBootMs);
  return { uid, manifest, bytes: w.toNumber(message.bytes), files, reason, takenBootMs };
}

export function syncReplyToWire(
  reply: SyncReply,
): MessageInitShape<typeof wire.SyncResponseSchema> {
  return {
    ...reply,
    epoch: w.toBigint(reply.epoch),
    generation: w.toBigint(reply.generation),
    desired: reply.desired.map(orderToWire),
    stop: reply.stop.map((order) => ({
      uid: order.uid,
      cause: w.endCause.toWire(order.cause),
      graceMs: w.toBigint(order.graceMs),
    })),
    timers: timersToWire(reply.timers),
  };
}

export function syncReplyFromWire(message: wire.SyncResponse): SyncReply {
  return {
    clusterId: message.clusterId,
    epoch: w.toNumber(message.epoch),
    generation: w.toNumber(message.generation),
    desired: message.desired.map(orderFromWire),
    stop: message.stop.map((order) => ({
      uid: order.uid,
      // The proto allows only these causes in a stop order; the agent reports it back as it came.
      cause: w.endCause.toWord(order.cause) as StopOrder['cause'],
      graceMs: w.toNumber(order.graceMs),
    })),
    acknowledged: message.acknowledged,
    tunnels: message.tunnels.map(({ gatewayUrl, ticket }) => ({ gatewayUrl, ticket })),
    ...(message.checkpoint.length > 0 && { checkpoint: message.checkpoint }),
    timers: timersFromWire(message.timers),
  };
}

export function chunkToWire(chunk: LogChunk): MessageInitShape<typeof wire.LogChunkSchema> {
  return {
    uid: chunk.uid,
    stream: w.logStream.toWire(chunk.stream),
    offset: w.toBigint(chunk.offset),
    atMs: w.toBigint(chunk.atMs),
    content: chunk.bytes,
  };
}

export function chunkFromWire(message: wire.LogChunk): LogChunk {
  return {
    uid: message.uid,
    stream: w.logStream.toWord(message.stream),
    offset: w.toNumber(message.offset),
    atMs: w.toNumber(message.atMs),
    bytes: message.content,
  };
}

export function ackToWire(ack: LogAck): MessageInitShape<typeof wire.LogAckSchema> {
  return {
    uid: ack.uid,
    stream: w.logStream.toWire(ack.stream),
    offset: w.toBigint(ack.offset),
  };
}

export function ackFromWire(message: wire.LogAck): LogAck {
  return {
    uid: message.uid,
    stream: w.logStream.toWord(message.stream),
    offset: w.toNumber(message.offset),
  };
}
