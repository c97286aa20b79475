/** Numbers and enums between our types and the generated ones: one table for each enum. */
import { DroverError } from '../../lib/errors.ts';
import type { AttemptState, EndCause } from '../../model/attempt.ts';
import type { After, JobKind, JobState, Priority } from '../../model/job.ts';
import type { ConstraintOperator, PlacementSpec } from '../../model/placement.ts';
import type { DeviceKind } from '../../model/resources.ts';
import type { TaskState } from '../../model/task.ts';
import { SCOPES, type Scope, type TokenKind } from '../../model/token.ts';
import type { WorkerState } from '../../model/worker.ts';
import type { LogStream } from '../agent.ts';
import * as fleet from '../gen/drover/v1/fleet_pb.ts';
import * as job from '../gen/drover/v1/job_pb.ts';

/** Our numbers are doubles: an int64 they cannot hold exactly is refused, never rounded. */
export function toNumber(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) {
    throw new DroverError('INVALID_ARGUMENT', `the number ${value} is beyond 2^53`);
  }
  return number;
}

export function toNumberOrNull(value: bigint | undefined): number | null {
  return value === undefined ? null : toNumber(value);
}

/** Throws RangeError for a fraction: our integers have none. */
export function toBigint(value: number): bigint {
  return BigInt(value);
}

export function toBigintOrNone(value: number | null | undefined): bigint | undefined {
  return value === null || value === undefined ? undefined : BigInt(value);
}

export interface EnumTable<Word extends string, Wire extends number> {
  toWire(word: Word): Wire;
  /** Nothing becomes 0, which every enum calls UNSPECIFIED. */
  toWireOrNone(word: Word | null | undefined): Wire;
  /** Throws on 0 and on a number this version does not know. */
  toWord(wire: number): Word;
  /** Undefined on 0, throws on a number this version does not know. */
  toWordOrNone(wire: number): Word | undefined;
}

export function enumTable<Word extends string, Wire extends number>(
  what: string,
  wires: Record<Word, Wire>,
): EnumTable<Word, Wire> {
  const words = new Map<number, Word>();
  for (const word in wires) words.set(wires[word], word);
  const toWordOrNone = (wire: number): Word | undefined => {
    const word = words.get(wire);
    if (word === undefined && wire !== 0) {
      throw new DroverError('INVALID_ARGUMENT', `${what} ${wire} is not known`);
    }
    return word;
  };
  return {
    toWire: (word) => wires[word],
    toWireOrNone: (word) => (word ? wires[word] : (0 as Wire)),
    toWordOrNone,
    toWord(wire) {
      const word = toWordOrNone(wire);
      if (word === undefined) throw new DroverError('INVALID_ARGUMENT', `${what} is not set`);
      return word;
    },
  };
}

export const jobState = enumTable<JobState, job.JobState>('job state', {
  PENDING: job.JobState.PENDING,
  RUNNING: job.JobState.RUNNING,
  SUCCEEDED: job.JobState.SUCCEEDED,
  FAILED: job.JobState.FAILED,
  CANCELLED: job.JobState.CANCELLED,
  UNSCHEDULABLE: job.JobState.UNSCHEDULABLE,
});

export const jobKind = enumTable<JobKind, job.JobKind>('job kind', {
  batch: job.JobKind.BATCH,
  service: job.JobKind.SERVICE,
});

export const priority = enumTable<Priority, job.Priority>('priority', {
  production: job.Priority.PRODUCTION,
  interactive: job.Priority.INTERACTIVE,
  batch: job.Priority.BATCH,
});

export const taskState = enumTable<TaskState, job.TaskState>('task state', {
  PENDING: job.TaskState.PENDING,
  ASSIGNED: job.TaskState.ASSIGNED,
  RUNNING: job.TaskState.RUNNING,
  SUCCEEDED: job.TaskState.SUCCEEDED,
  FAILED: job.TaskState.FAILED,
  CANCELLED: job.TaskState.CANCELLED,
  UNSCHEDULABLE: job.TaskState.UNSCHEDULABLE,
});

export const attemptState = enumTable<AttemptState, job.AttemptState>('attempt state', {
  ASSIGNED: job.AttemptState.ASSIGNED,
  STARTING: job.AttemptState.STARTING,
  RUNNING: job.AttemptState.RUNNING,
  STOPPING: job.AttemptState.STOPPING,
  ENDED: job.AttemptState.ENDED,
});

export const endCause = enumTable<EndCause, job.EndCause>('end cause', {
  exited: job.EndCause.EXITED,
  signalled: job.EndCause.SIGNALLED,
  oom: job.EndCause.OOM,
  'timed-out': job.EndCause.TIMED_OUT,
  preempted: job.EndCause.PREEMPTED,
  lost: job.EndCause.LOST,
  'gang-failed': job.EndCause.GANG_FAILED,
  cancelled: job.EndCause.CANCELLED,
  'never-started': job.EndCause.NEVER_STARTED,
});

export const deviceKind = enumTable<DeviceKind, job.DeviceKind>('device kind', {
  gpu: job.DeviceKind.GPU,
  tpu: job.DeviceKind.TPU,
  npu: job.DeviceKind.NPU,
});

export const logStream = enumTable<LogStream, job.LogStream>('log stream', {
  stdout: job.LogStream.STDOUT,
  stderr: job.LogStream.STDERR,
  metrics: job.LogStream.METRICS,
  system: job.LogStream.SYSTEM,
});

export const workerState = enumTable<WorkerState, fleet.WorkerState>('worker state', {
  ONLINE: fleet.WorkerState.ONLINE,
  SUSPECT: fleet.WorkerState.SUSPECT,
  LOST: fleet.WorkerState.LOST,
});

export const tokenKind = enumTable<TokenKind, fleet.TokenKind>('token kind', {
  user: fleet.TokenKind.USER,
  join: fleet.TokenKind.JOIN,
  attempt: fleet.TokenKind.ATTEMPT,
});

export const storeKind = enumTable<'sqlite' | 'postgres', fleet.StoreKind>('store', {
  sqlite: fleet.StoreKind.SQLITE,
  postgres: fleet.StoreKind.POSTGRES,
});

/** A scope from a newer version grants nothing here, so it is left out. */
export function knownScopes(scopes: readonly string[]): Scope[] {
  const known: readonly string[] = SCOPES;
  return scopes.filter((scope): scope is Scope => known.includes(scope));
}

/** A message a sender of ours always sets; a foreign one may forget it. */
export function need<Message>(message: Message | undefined, what: string): Message {
  if (message === undefined) throw new DroverError('INVALID_ARGUMENT', `${what} is not set`);
  return message;
}

export const constraintOperator = enumTable<ConstraintOperator, job.ConstraintOperator>(
  'constraint operator',
  {
    EQ: job.ConstraintOperator.EQ,
    NE: job.ConstraintOperator.NE,
    IN: job.ConstraintOperator.IN,
    GT: job.ConstraintOperator.GT,
    LT: job.ConstraintOperator.LT,
    EXISTS: job.ConstraintOperator.EXISTS,
  },
);

export const arrangement = enumTable<PlacementSpec['arrangement'], job.Arrangement>('arrangement', {
  pack: job.Arrangement.PACK,
  spread: job.Arrangement.SPREAD,
});

export const trust = enumTable<PlacementSpec['trust'], job.Trust>('trust', {
  normal: job.Trust.NORMAL,
  restricted: job.Trust.RESTRICTED,
});

export const afterCondition = enumTable<After['when'], job.AfterCondition>('after condition', {
  ok: job.AfterCondition.OK,
  failed: job.AfterCondition.FAILED,
  any: job.AfterCondition.ANY,
});
