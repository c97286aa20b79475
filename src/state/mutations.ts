/** Mutations: plain data with guards. A failed guard is a result, never an exception. */
import type { StopCause } from '../model/attempt.ts';
import type { Budget } from '../model/budget.ts';
import type { DataSet } from '../model/dataSet.ts';
import type { SubmittedDownstream } from '../model/downstream.ts';
import type { Claim } from '../model/claim.ts';
import type { Event } from '../model/event.ts';
import type { AttemptUid, InstanceId, JobId, TaskId, TokenId, WorkerId } from '../model/ids.ts';
import type { After, JobSpec, Priority } from '../model/job.ts';
import type { Worker } from '../model/worker.ts';
import type { Ending } from '../core/retry.ts';
import type { InstanceMutation } from './instanceMutations.ts';
import type { PeopleMutation } from './peopleMutations.ts';

export interface SubmitLink {
  waits: number;
  after: number;
  when: After['when'];
}

export interface Submit {
  kind: 'submit';
  tenant: string;
  owner: string;
  submittingPrincipal: string;
  specs: JobSpec[];
  /** The job whose attempt submits; absent: a user does. */
  parent?: JobId;
  /** Jobs of this submission that wait for others of it, by position: they have no ids yet. */
  links: SubmitLink[];
  idempotencyKey: string | null;
  bodyHash: string | null;
  /** For whom its attempts get tokens of other services; absent: as its parent's do. */
  downstream?: SubmittedDownstream | undefined;
}

export interface Cancel {
  kind: 'cancel';
  job: JobId;
  by: string;
}

export interface SetPriority {
  kind: 'set-priority';
  job: JobId;
  priority: Priority;
  by: string;
}

/** One task, or a whole gang: all or none. */
export interface Assign {
  kind: 'assign';
  job: JobId;
  round: number;
  tasks: { task: TaskId; version: number; claim: Claim }[];
}

/** Victims are asked to stop and the tasks nominated for what they leave: all or nothing. */
export interface Preempt {
  kind: 'preempt';
  job: JobId;
  round: number;
  /** Claims that are NOMINATED. */
  tasks: { task: TaskId; version: number; claim: Claim }[];
  victims: { uid: AttemptUid }[];
  reason: string;
}

/** A nominated task wants its place no more. */
export interface Withdraw {
  kind: 'withdraw';
  owner: AttemptUid;
  reason: string;
}

/** These are charged for the time until now. */
export interface Charge {
  kind: 'charge';
  attempts: AttemptUid[];
}

export interface SetBudget {
  kind: 'set-budget';
  budget: Omit<Budget, 'version'>;
  by: string;
}

export interface DeleteBudget {
  kind: 'delete-budget';
  tenant: string;
  user: string;
  by: string;
}

/** The name means these bytes from now on. */
export interface PutData {
  kind: 'put-data';
  dataSet: Omit<DataSet, 'version' | 'createdAtMs' | 'createdBy'>;
  by: string;
}

export interface RemoveData {
  kind: 'remove-data';
  tenant: string;
  name: string;
  by: string;
}

/** What an agent sees. Only what differs from the state has an effect. */
export interface Observe {
  kind: 'observe';
  worker: WorkerId;
  observed: Observed[];
  /**
   * The full list came from the newest sync, so what is missing from it is gone from the machine.
   */
  complete: boolean;
}

export interface Observed {
  uid: AttemptUid;
  state: 'STARTING' | 'RUNNING' | 'STOPPING' | 'ENDED';
  ending: AttemptEnding | null;
  /** Told once it is known what it runs with. */
  facts?: Record<string, string>;
  /** For a person, while it starts or is kept: what goes on. */
  progress?: string;
  /** Its devices have nothing to do. */
  idle?: { message: string; stop: boolean };
}

export interface AttemptEnding extends Ending {
  stdoutBytes: number | null;
  stderrBytes: number | null;
  /** What it left: the blob of its manifest. */
  result?: { manifest: string; bytes: number } | undefined;
}

/** An attempt has stored what its task may resume from. */
export interface AddCheckpoint {
  kind: 'add-checkpoint';
  worker: WorkerId;
  attempt: AttemptUid;
  takenBootMs: number;
  manifest: string;
  bytes: number;
  files: number;
  reason: string;
}

export interface Stop {
  kind: 'stop';
  attempts: { uid: AttemptUid; version: number }[];
  cause: StopCause;
  reason: string;
}

/** The lease of these attempts ran out, or there is proof that their machine is gone. */
export interface Lose {
  kind: 'lose';
  attempts: AttemptUid[];
  reason: string;
}

/** Tasks that waited longer than `startWithin`. */
export interface GiveUp {
  kind: 'give-up';
  job: JobId;
  reason: string;
}

export interface Join {
  kind: 'join';
  /** Fields of the registration; the rest is the state's. */
  worker: Registration;
  maxLiveWorkers: number;
  /** The instance it joins for, by its token; absent: none. */
  instance?: InstanceId;
  /** What the provider calls the machine, where a token is good for a whole pool. */
  handle?: string;
  /** For the uids of the tasks that the instance was sized for. */
  randomHex?: readonly string[];
}

type Registration = Omit<
  Worker,
  | 'id'
  | 'version'
  | 'state'
  | 'draining'
  | 'joinedAtMs'
  | 'endedAtMs'
  | 'instance'
  | 'endsAtMs'
  | 'problems'
>;

export interface MoveWorker {
  kind: 'move-worker';
  worker: WorkerId;
  move: 'suspect' | 'recover' | 'lose';
  reason: string;
}

export interface Drain {
  kind: 'drain';
  worker: WorkerId;
  draining: boolean;
  by: string;
  /** Of whoever did it. */
  tenant: string;
}

/** Somebody looked, or was given something: kept for those who ask who did. */
interface Note {
  kind: 'note';
  what: 'job.inside' | 'secrets.given' | 'tokens.given' | 'tokens.refused';
  tenant: string;
  job: JobId;
  task: TaskId;
  attempt: AttemptUid;
  data: Event['data'];
}

/** Refresh tokens were replaced: whoever has the old envelope gets the new one. */
export interface Reseal {
  kind: 'reseal';
  from: string;
  to: string;
}

/** The worker's token is good no more: what it runs is lost when its lease has run out. */
export interface RevokeWorker {
  kind: 'revoke-worker';
  worker: WorkerId;
  by: string;
  tenant: string;
}
/** What became of a notice that was sent, or could not be. */
export type SettleNotice = { kind: 'settle-notice'; id: string; reason: string } & (
  | { outcome: 'sent' | 'dropped' }
  | { outcome: 'failed'; nextTryAtMs: number }
);

export type Mutation =
  | Submit
  | Cancel
  | Assign
  | Preempt
  | Withdraw
  | Charge
  | SetBudget
  | DeleteBudget
  | PutData
  | RemoveData
  | Observe
  | AddCheckpoint
  | Stop
  | Lose
  | GiveUp
  | Join
  | MoveWorker
  | Drain
  | RevokeWorker
  | Note
  | Reseal
  | SettleNotice
  | SetPriority
  | PeopleMutation
  | InstanceMutation;

/**
 * `stale`: what the mutation was computed from has changed since; whoever planned it plans again.
 */
export type Result =
  | { kind: 'done' }
  | { kind: 'stale'; reason: string }
  | { kind: 'missing'; what: string }
  | { kind: 'submitted'; ids: JobId[]; replayed: boolean }
  | { kind: 'key-mismatch' }
  | { kind: 'name-taken'; name: string; job: JobId | null }
  | { kind: 'joined'; worker: WorkerId; superseded: boolean }
  | { kind: 'too-many'; limit: number }
  | { kind: 'instance-ended'; reason: string }
  | { kind: 'intended'; ids: InstanceId[] }
  | { kind: 'token'; id: TokenId };

export const DONE: Result = { kind: 'done' };

export function stale(reason: string): Result {
  return { kind: 'stale', reason };
}

export function missing(what: string): Result {
  return { kind: 'missing', what };
}
