/** What a job brings, needs and leaves beside its command, between our types and the generated. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  CheckpointSpec,
  IdleRule,
  JobParts,
  JobRules,
  SecretSpec,
} from '../../model/jobParts.ts';
import type { OrderParts } from '../agent.ts';
import type * as agentWire from '../gen/drover/v1/agent_pb.ts';
import type * as wire from '../gen/drover/v1/job_pb.ts';
import * as w from './wire.ts';

type Init = MessageInitShape<typeof wire.JobSpecSchema>;

export function partsToWire({ environment, checkpoint, rules, ...others }: JobParts) {
  return {
    code: others.code,
    inputs: others.inputs ?? [],
    secrets: others.secrets ?? [],
    annotations: others.annotations ?? {},
    environment: environment && { ...environment, shmBytes: w.toBigint(environment.shmBytes) },
    checkpoint: checkpoint && {
      ...checkpoint,
      everyMs: w.toBigint(checkpoint.everyMs),
      beforeDeadlineMs: w.toBigint(checkpoint.beforeDeadlineMs),
    },
    rules: rules && {
      ...rules,
      keepOnFailureMs: w.toBigint(rules.keepOnFailureMs),
      idle: idleToWire(rules.idle),
    },
  } satisfies Partial<Init>;
}

export function orderPartsToWire(parts: OrderParts) {
  const { code, inputs, environment, checkpoint } = partsToWire(parts);
  return {
    ...{ code, inputs, environment, checkpoint },
    restore: parts.restore ?? [],
    secrets: parts.secrets ?? [],
    outputs: parts.outputs ?? [],
    maySubmit: parts.maySubmit ?? false,
    downstream: parts.downstream ?? false,
    keepOnFailureMs: w.toBigint(parts.keepOnFailureMs ?? 0),
    timeLimitMs: w.toBigint(parts.timeLimitMs ?? 0),
    idle: idleToWire(parts.idle),
  };
}

function idleToWire(rule: IdleRule | null | undefined) {
  return rule ? { ...rule, forMs: w.toBigint(rule.forMs) } : undefined;
}

export function orderPartsFromWire(message: agentWire.AttemptOrder): OrderParts {
  const { secrets, outputs, restore } = message;
  const keepOnFailureMs = w.toNumber(message.keepOnFailureMs);
  const timeLimitMs = w.toNumber(message.timeLimitMs);
  return {
    ...filesFromWire(message),
    ...(restore.length > 0 && { restore }),
    ...(secrets.length > 0 && { secrets: secrets.map(secretFromWire) }),
    ...(outputs.length > 0 && { outputs }),
    ...(message.maySubmit && { maySubmit: true }),
    ...(message.downstream && { downstream: true }),
    ...(keepOnFailureMs > 0 && { keepOnFailureMs }),
    ...(timeLimitMs > 0 && { timeLimitMs }),
    ...(message.idle && { idle: idleFromWire(message.idle) }),
  };
}

/** Not yet checked: the words are compared with the lists by the schema of a submission. */
export function partsFromWire(message: wire.JobSpec): JobParts {
  const { secrets, rules, annotations } = message;
  return {
    ...filesFromWire(message),
    ...(secrets.length > 0 && { secrets: secrets.map(secretFromWire) }),
    ...(rules && { rules: rulesFromWire(rules) }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}

type WireFiles = Pick<wire.JobSpec, 'code' | 'inputs' | 'environment' | 'checkpoint'>;

function filesFromWire({
  code,
  inputs,
  environment,
  checkpoint,
}: WireFiles): Pick<JobParts, keyof WireFiles> {
  return {
    ...(code && { code: plain(code) }),
    ...(inputs.length > 0 && { inputs: inputs.map(plain) }),
    ...(environment && {
      environment: { ...plain(environment), shmBytes: w.toNumber(environment.shmBytes) },
    }),
    ...(checkpoint && { checkpoint: checkpointFromWire(checkpoint) }),
  };
}

function secretFromWire({ name, as, target }: wire.SecretUse): SecretSpec {
  return { name, as: (as || 'env') as SecretSpec['as'], target };
}

function checkpointFromWire(message: wire.Checkpointing): CheckpointSpec {
  return {
    dir: message.dir,
    everyMs: w.toNumberOrNull(message.everyMs) ?? 60_000,
    signal: message.signal as CheckpointSpec['signal'],
    beforeDeadlineMs: w.toNumberOrNull(message.beforeDeadlineMs) ?? 120_000,
    keep: message.keep ?? 3,
  };
}

function rulesFromWire(message: wire.Rules): JobRules {
  const { idle, notify, nameTaken, maySubmit, outliveParent, outputs } = message;
  return {
    keepOnFailureMs: w.toNumber(message.keepOnFailureMs),
    idle: idle ? idleFromWire(idle) : null,
    notify: notify.map(({ to, on }) => ({ to, on: on as JobRules['notify'][number]['on'] })),
    nameTaken: (nameTaken || 'allow') as JobRules['nameTaken'],
    maySubmit,
    outliveParent,
    outputs,
    requeueExitCode: message.requeueExitCode,
  };
}

function idleFromWire({ belowPercent, forMs, action }: wire.IdleRule): IdleRule {
  return {
    belowPercent,
    forMs: w.toNumber(forMs),
    action: (action || 'warn') as IdleRule['action'],
  };
}

/** Without what the generated code adds to a message. */
function plain<Message extends { $typeName: string; $unknown?: unknown }>(
  message: Message,
): Omit<Message, '$typeName' | '$unknown'> {
  const { $typeName: _name, $unknown: _unknown, ...fields } = message;
  return fields;
}
