/** A job's spec between our type and the generated one. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { JobId } from '../../model/ids.ts';
import type { JobSpec, Shape } from '../../model/job.ts';
import { PLAIN_PLACEMENT, type PlacementSpec } from '../../model/placement.ts';
import type { DeviceRequest, ResourceRequest } from '../../model/resources.ts';
import type * as wire from '../gen/drover/v1/job_pb.ts';
import { deviceRequest, jobSpec } from '../jobSpec.ts';
import { partsFromWire, partsToWire } from './partMessages.ts';
import * as w from './wire.ts';

/** The one source of defaults is the REST schema. */
const SPEC_DEFAULTS = jobSpec.parse({ command: ['true'] });
const DEVICE_DEFAULTS = deviceRequest.parse({});

export function specToWire(spec: JobSpec): MessageInitShape<typeof wire.JobSpecSchema> {
  return {
    ...spec,
    ...partsToWire(spec),
    resources: resourcesToWire(spec.resources),
    shape: shapeToWire(spec.shape),
    priority: w.priority.toWire(spec.priority),
    timeLimitMs: w.toBigint(spec.timeLimitMs),
    startWithinMs: w.toBigint(spec.startWithinMs),
    graceMs: w.toBigint(spec.graceMs),
    attemptLeaseMs: w.toBigint(spec.attemptLeaseMs),
    placement: placementToWire(spec.placement),
    after: spec.after.map(({ job, when }) => ({ job, when: w.afterCondition.toWire(when) })),
    maxCostMicros: w.toBigint(spec.maxCostMicros),
  };
}

/** Fills in what the sender left out. Not yet checked against the limits of a submission. */
export function specFromWire(message: wire.JobSpec): JobSpec {
  return {
    name: message.name,
    command: message.command,
    env: { ...message.env },
    workdir: message.workdir,
    resources: resourcesFromWire(message.resources),
    shape: shapeFromWire(message.shape),
    pool: message.pool,
    priority: w.priority.toWordOrNone(message.priority) ?? SPEC_DEFAULTS.priority,
    retries: message.retries,
    maxInterruptions: message.maxInterruptions ?? SPEC_DEFAULTS.maxInterruptions,
    timeLimitMs: w.toNumber(message.timeLimitMs),
    startWithinMs: w.toNumber(message.startWithinMs),
    graceMs: w.toNumberOrNull(message.graceMs) ?? SPEC_DEFAULTS.graceMs,
    attemptLeaseMs: w.toNumber(message.attemptLeaseMs),
    labels: { ...message.labels },
    placement: message.placement ? placementFromWire(message.placement) : PLAIN_PLACEMENT,
    after: message.after.map(({ job, when }) => ({
      job: job as JobId,
      when: w.afterCondition.toWordOrNone(when) ?? 'ok',
    })),
    maxCostMicros: w.toNumber(message.maxCostMicros),
    ...partsFromWire(message),
  };
}

function placementToWire(placement: PlacementSpec): MessageInitShape<typeof wire.PlacementSchema> {
  return {
    ...placement,
    constraints: placement.constraints.map((constraint) => ({
      ...constraint,
      operator: w.constraintOperator.toWire(constraint.operator),
    })),
    arrangement: w.arrangement.toWire(placement.arrangement),
    trust: w.trust.toWire(placement.trust),
  };
}

function placementFromWire(message: wire.Placement): PlacementSpec {
  return {
    constraints: message.constraints.map(({ attribute, operator, values, preferred }) => ({
      attribute,
      operator: w.constraintOperator.toWord(operator),
      values,
      preferred,
    })),
    arrangement: w.arrangement.toWordOrNone(message.arrangement) ?? PLAIN_PLACEMENT.arrangement,
    exclusive: message.exclusive,
    antiAffinity: message.antiAffinity,
    locality: message.locality,
    interruptible: message.interruptible,
    trust: w.trust.toWordOrNone(message.trust) ?? PLAIN_PLACEMENT.trust,
  };
}

function resourcesToWire(
  resources: ResourceRequest,
): MessageInitShape<typeof wire.ResourceRequestSchema> {
  const device = resources.device;
  return {
    cpuMillis: w.toBigint(resources.cpuMillis),
    memoryBytes: w.toBigint(resources.memoryBytes),
    ports: resources.ports,
    device: device
      ? {
          ...device,
          kind: w.deviceKind.toWire(device.kind),
          memoryBytes: w.toBigint(device.memoryBytes),
        }
      : undefined,
  };
}

function resourcesFromWire(message: wire.ResourceRequest | undefined): ResourceRequest {
  if (!message) return SPEC_DEFAULTS.resources;
  return {
    cpuMillis: w.toNumberOrNull(message.cpuMillis) ?? SPEC_DEFAULTS.resources.cpuMillis,
    memoryBytes: w.toNumber(message.memoryBytes),
    device: message.device ? deviceFromWire(message.device) : null,
    ports: message.ports,
  };
}

function deviceFromWire(message: wire.DeviceRequest): DeviceRequest {
  return {
    kind: w.deviceKind.toWordOrNone(message.kind) ?? DEVICE_DEFAULTS.kind,
    count: message.count ?? DEVICE_DEFAULTS.count,
    share: message.share ?? DEVICE_DEFAULTS.share,
    models: message.models,
    memoryBytes: w.toNumber(message.memoryBytes),
  };
}

function shapeToWire(shape: Shape): MessageInitShape<typeof wire.ShapeSchema> {
  switch (shape.kind) {
    case 'single':
      return { kind: { case: 'single', value: {} } };
    case 'array':
      return { kind: { case: 'array', value: { indices: shape.indices, limit: shape.limit } } };
    default:
      return { kind: { case: 'gang', value: { size: shape.size } } };
  }
}

function shapeFromWire(message: wire.Shape | undefined): Shape {
  switch (message?.kind.case) {
    case 'array':
      return {
        kind: 'array',
        indices: message.kind.value.indices,
        limit: message.kind.value.limit,
      };
    case 'gang':
      return { kind: 'gang', size: message.kind.value.size };
    default:
      return { kind: 'single' };
  }
}
