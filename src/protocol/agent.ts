/** What agents and the controller say to each other: join, sync, logs. */
import { z } from 'zod';
import { ATTEMPT_STATES, END_CAUSES } from '../model/attempt.ts';
import { BLOB_HASH } from '../model/blob.ts';
import type { AudienceRefusal } from '../model/downstream.ts';
import { HEALTH_SEVERITIES } from '../model/health.ts';
import type { IdleRule, JobParts } from '../model/jobParts.ts';
import { storable } from './texts.ts';

export { joinRequest, type JoinRequest } from './join.ts';

export const AGENT_VERSION = '0.1.0';
/**
 * The gateway serves these by hand, as JSON, at the paths a Connect client of `drover.v1.Agent`
 * would use.
 */
export const AGENT_PATHS = {
  join: '/drover.v1.Agent/Join',
  sync: '/drover.v1.Agent/Sync',
  logs: '/drover.v1.Agent/AppendLogs',
  checkpoint: '/drover.v1.Agent/AddCheckpoint',
  secrets: '/drover.v1.Agent/AttemptSecrets',
  tokens: '/drover.v1.Agent/AttemptTokens',
  connector: '/drover.v1.Agent/ExchangeCommands',
} as const;

/** What an attempt writes. */
export const OUTPUT_STREAMS = ['stdout', 'stderr'] as const;
export type OutputStream = (typeof OUTPUT_STREAMS)[number];
/** What is measured of it, as JSON lines: by the job itself, and by the agent. */
const METRIC_STREAMS = ['metrics', 'system'] as const;
export type MetricStream = (typeof METRIC_STREAMS)[number];
/** In the order of their numbers in log frames. */
export const LOG_STREAMS = [...OUTPUT_STREAMS, ...METRIC_STREAMS] as const;
export type LogStream = (typeof LOG_STREAMS)[number];

/** Named limits of what agents say. */
export const AGENT_LIMITS = { facts: 100, held: 128, problems: 100 } as const;

const text = z.string().max(1024).overwrite(storable);
const blobHash = z.string().regex(BLOB_HASH);
const count = z.int().min(0);

export interface JoinReply {
  worker: string;
  /** The worker token, shown once; sent as `authorization: Bearer` on every later call. */
  token: string;
  clusterId: string;
  epoch: number;
  timers: Timers;
}

export interface Timers {
  /** Without contact for this long: SUSPECT, no new work. */
  workerLeaseMs: number;
  /**
   * Without contact for this long: attempts are called lost (a job may set its own, see orders).
   */
  attemptLeaseMs: number;
  /** The agent has killed its attempts this long before the controller's expiry, grace included. */
  killMarginMs: number;
  /** How long the controller holds a sync when it has nothing to say. */
  longPollMs: number;
}

/** One attempt as the agent sees it. Ended ones stay observed until acknowledged. */
export const observation = z.strictObject({
  uid: text,
  state: z.enum(ATTEMPT_STATES).exclude(['ASSIGNED']),
  /** Given when ENDED. */
  cause: z.enum(END_CAUSES).optional(),
  exitCode: z.int().nullable().optional(),
  signal: text.nullable().optional(),
  message: z.string().max(4096).overwrite(storable).optional(),
  /** Given when ENDED: true when the machine, not the command, was at fault. */
  hostFault: z.boolean().optional(),
  stdoutBytes: count.optional(),
  stderrBytes: count.optional(),
  /** What it runs with: driver, devices, image, environment. */
  facts: z
    .record(z.string().max(100).overwrite(storable), z.string().max(4096).overwrite(storable))
    .refine((facts) => Object.keys(facts).length <= AGENT_LIMITS.facts)
    .optional(),
  /** For a person, while it starts or is kept: what goes on. */
  progress: text.optional(),
  /** ENDED only: the manifest of what it left. */
  result: z.strictObject({ manifest: blobHash, bytes: count }).optional(),
  /** ENDED only: what it left could not be kept; `message` says why. */
  unstored: z.boolean().optional(),
  /** ENDED only: it had failed before and was kept for a look; a stop only let it go. */
  held: z.boolean().optional(),
  /** RUNNING only: its devices have nothing to do, and what its rule says about that. */
  idle: z.strictObject({ message: text, stop: z.boolean() }).optional(),
});
export type Observation = z.infer<typeof observation>;

const heldInput = z.strictObject({ hash: blobHash, bytes: count });
export type HeldInput = z.infer<typeof heldInput>;

const healthProblem = z.strictObject({
  check: text.min(1),
  severity: z.enum(HEALTH_SEVERITIES),
  message: text,
  device: count.optional(),
});

export const syncRequest = z.strictObject({
  worker: text,
  bootId: text,
  /** Rises with every start of the agent on its data folder; with `seq` it orders syncs. */
  start: count,
  seq: count,
  /** The highest epoch the agent has an answer of; 0 when it has just started. */
  epoch: count,
  /** Every attempt on the machine, not a difference. */
  observed: z.array(observation).max(100_000),
  /** False: answer at once, do not park. */
  wait: z.boolean(),
  /** The largest inputs of jobs that it has already; absent: as it said in this epoch. */
  held: z.array(heldInput).max(AGENT_LIMITS.held).optional(),
  /** All that is wrong with the machine now; absent: as it said last. */
  health: z
    .strictObject({ problems: z.array(healthProblem).max(AGENT_LIMITS.problems) })
    .optional(),
});
export type SyncRequest = z.infer<typeof syncRequest>;

export const checkpointReport = z.strictObject({
  uid: text,
  manifest: blobHash,
  bytes: count,
  files: count,
  /** What it was taken for. */
  reason: text,
  /** On the machine's clock since its boot: tells a report that was overtaken on its way. */
  takenBootMs: count.default(0),
});
export type CheckpointReport = z.infer<typeof checkpointReport>;

/** Whose blobs an agent may use for an attempt it runs. */
export interface AttemptAccess {
  tenant: string;
  job: string;
  task: string;
}

export const attemptSecretsRequest = z.strictObject({ uid: text });

/** What an attempt may know and others may not. Never written down with its order. */
export interface AttemptSecrets {
  /** By the secret's name. */
  values: Record<string, string>;
  /** With it the job may submit others; null: it may not. */
  token: string | null;
}

/** Tokens of other services for an attempt, by the names the settings have for these. */
export interface AttemptTokens {
  tokens: { audience: string; token: string; expiresAtMs: number }[];
  refused: AudienceRefusal[];
  /** When to ask again: before the first of them runs out. */
  renewInMs: number;
}

/** Everything an agent needs to run one attempt. */
export interface AttemptOrder extends OrderParts {
  uid: string;
  job: string;
  task: string;
  index: number;
  n: number;
  command: string[];
  /** Complete: the user's variables and Drover's own (DROVER_*, RANK, …). */
  env: Record<string, string>;
  workdir: string;
  cpuMillis: number;
  memoryBytes: number;
  devices: { index: number; kind: string }[];
  /** Thousandths of each device. */
  share: number;
  ports: number[];
  graceMs: number;
  attemptLeaseMs: number;
  /** Members of a gang whose agents all know how to meet, see PREFLIGHT. */
  gang?: GangOrder;
}

/** What is fetched or built before the command starts, and kept when it is over. */
export interface OrderParts extends Pick<
  JobParts,
  /** Of secrets only the names: the agent asks for their values when it needs them. */
  'code' | 'inputs' | 'environment' | 'checkpoint' | 'secrets'
> {
  /** Manifests to resume from, newest first: the first that is whole; absent: none yet. */
  restore?: string[] | undefined;
  /** Patterns of files that belong to the result. */
  outputs?: string[] | undefined;
  /** It gets a token of its own. */
  maySubmit?: boolean | undefined;
  /** It gets tokens of other services: the agent asks for them. */
  downstream?: boolean | undefined;
  keepOnFailureMs?: number | undefined;
  /** Counted from when the command starts. */
  timeLimitMs?: number | undefined;
  /** When its devices count as idle; absent: never. */
  idle?: IdleRule | undefined;
}

/** The capability of an agent whose gang members meet before the user's command starts. */
export const PREFLIGHT = 'preflight';

/** What a member must know to meet the others. */
export interface GangOrder {
  rank: number;
  size: number;
  round: number;
  /** Only members of this round know it. */
  token: string;
  /** This member's worker, by name. */
  worker: string;
  /** Where rank 0 listens. Null: rank 0 is over already, so that nobody can meet it. */
  master: { worker: string; address: string; port: number } | null;
  /** By rank, all of them; for rank 0 only, which tells who did not come. */
  members: { worker: string; address: string }[];
  /** GPUs the command shall see, in this order; empty: its own only. */
  visibleGpus: number[];
}

export interface StopOrder {
  uid: string;
  /** Reported back as the attempt's cause. */
  cause: 'cancelled' | 'timed-out' | 'preempted' | 'gang-failed' | 'lost';
  graceMs: number;
}

export interface TunnelOrder {
  gatewayUrl: string;
  ticket: string;
}

export interface SyncReply {
  clusterId: string;
  epoch: number;
  /** Rises within an epoch; an agent ignores lower (epoch, generation). */
  generation: number;
  /** Attempts to start: assigned here and not in what the agent said it observes. */
  desired: AttemptOrder[];
  stop: StopOrder[];
  /** Ended attempts whose end is on disk: the agent may forget them (once their logs are up). */
  acknowledged: string[];
  tunnels: TunnelOrder[];
  /** Attempts that are asked for a checkpoint now. */
  checkpoint?: string[];
  timers: Timers;
}

/**
 * A run of bytes of one attempt's output. The body of AppendLogs is a sequence of frames, see
 * logFrames.ts.
 */
export interface LogChunk {
  uid: string;
  stream: LogStream;
  /** Offset of the first byte in that stream. */
  offset: number;
  /** When the agent read it. */
  atMs: number;
  bytes: Uint8Array;
}

/** Per chunk sent, in order: everything below `offset` is on disk at the controller. */
export interface LogAck {
  uid: string;
  stream: LogStream;
  offset: number;
}
