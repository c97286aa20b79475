/**
 * What starts and stops machines. Every verb is idempotent and returns at once: "not yet" is a
 * result, and what could not be learned is `unknown`, never "none". An expected failure is a
 * result too; a provider throws only where it is itself broken.
 */
import type { FailureClass } from '../model/instance.ts';
import type { ResourceRequest } from '../model/resources.ts';

export interface Provider {
  readonly capabilities: Capabilities;
  /** Asks for the machines of one batch: all of it or nothing. */
  launch(batch: LaunchBatch): Promise<LaunchResult>;
  /** Everything of ours that the provider has, also what nobody remembers. */
  list(): Promise<Listing>;
  /** Asks for their end. That they are gone is told by `list` alone. */
  destroy(request: DestroyRequest): Promise<DestroyResult>;
  /** Whether one that runs is on its way to join, for providers that can look. */
  probe?(machine: MachineRef): Promise<Probe>;
  /** The last lines that one wrote before it joined, for a person. */
  logs?(machine: MachineRef): Promise<string>;
  close(): Promise<void>;
}

export interface Capabilities {
  /** For people: "Slurm job", "SSH host", "Salad replica". */
  noun: string;
  /** A batch may have several intents; otherwise it has one. */
  batches: boolean;
  /** An instance may bring several workers at once, which reach each other. */
  gangs: boolean;
  /** Instances can be sized for the job they are for. */
  sized: boolean;
  /** One may wait in a queue for any time: it is not late until it has started. */
  queues: boolean;
  /**
   * Machines carry the label of their intent. Where they cannot (replicas of a group), `list`
   * leaves the label empty and any intent without a machine takes any machine without an intent.
   */
  labels: boolean;
}

/** Equal machines that are asked for with one call. */
export interface LaunchBatch {
  /** Unique for ever; the labels of its intents are made of it. */
  id: string;
  intents: readonly LaunchIntent[];
  /** What each worker must have; null: whatever the pool's machines have. */
  resources: ResourceRequest | null;
  /** How many workers each instance brings. */
  workers: number;
  /** How long each is wanted; 0: as long as the pool gives. */
  timeLimitMs: number;
  /** A stop notice this long is wanted before the provider ends one. */
  noticeMs: number;
  /** Whose work it is for; null: anybody's. */
  runAs: { tenant: string; user: string } | null;
  /** For people: the name of the job, or of the pool. */
  name: string;
  /** Hosts that must not be used. */
  avoid: readonly string[];
  /** How many instances the pool has then, with these: for providers that scale by a number. */
  target: number;
  agent: AgentLaunch;
}

export interface LaunchIntent {
  /** `<batch>` for a batch of one, otherwise `<batch>.<place in it>`. */
  label: string;
  /** The secret with which its agent joins; good for this intent alone, and while it lives. */
  joinToken: string;
}

/** What an agent must be told to find its way home. */
export interface AgentLaunch {
  /** Of the gateway that agents dial. */
  url: string;
  /** PEM of whom it trusts beside the public authorities; empty: nobody else. */
  authorities: string;
  /** Without contact for this long a machine ends itself. */
  selfDestructAfterMs: number;
}

export type LaunchResult =
  | {
      kind: 'launched';
      /** In the order of the intents; empty texts where `list` will tell. */
      handles: string[];
      /** What it was launched with, for a person; without secrets. */
      script: string;
    }
  /** Nothing was started, and nothing will be. */
  | { kind: 'refused'; reason: string; refusal: Refusal; retryAfterMs: number }
  /** The reply was lost: `list` decides. */
  | { kind: 'unknown'; reason: string };

/**
 * capacity: it has none just now, or a quota is reached. configuration: it will never take this
 * (partition, account, template, key); a person must change something. unreachable: it could not be
 * asked.
 */
export const REFUSALS = ['capacity', 'configuration', 'unreachable'] as const;
export type Refusal = (typeof REFUSALS)[number];

export interface MachineRef {
  label: string;
  /** Empty while it is not known. */
  handle: string;
}

export interface DestroyRequest {
  machines: readonly MachineRef[];
  /** How many instances the pool has then: for providers that scale by a number. */
  target: number;
}

/** `asked`: it heard us. */
export type DestroyResult = { kind: 'asked' } | { kind: 'unknown'; reason: string };

export type Listing =
  | { kind: 'known'; machines: Machine[]; others?: OtherWork[]; notice?: string }
  | { kind: 'unknown'; reason: string; retryAfterMs: number };

/**
 * queued: it waits at the provider's. booting: it gets its machine. running: its agent can be up.
 * ending: it still may cost. gone: it is over, although the provider still shows it.
 */
export const MACHINE_PHASES = ['queued', 'booting', 'running', 'ending', 'gone'] as const;
export type MachinePhase = (typeof MACHINE_PHASES)[number];

export interface Machine extends MachineRef {
  phase: MachinePhase;
  /** For a person: "Priority", "pulling the image, 40 %", "TIMEOUT". */
  reason: string;
  /** Why it failed, where the provider can tell; null: it did not, or nobody knows. */
  failure: FailureClass | null;
  /** The physical machine; empty: not known. */
  host: string;
  /** When it is expected to start. */
  startsAtMs: number | null;
  /** How long until the provider ends it; null: not known, or never. */
  leftMs: number | null;
  /** How often the provider started it again by itself. */
  restarts: number;
  /** It costs money just now. */
  billed: boolean;
  /** What an hour costs, where it is known better than from the settings. */
  priceHourMicros: number | null;
}

/** Work at the same place that is not ours, for those who look at the pool. */
export interface OtherWork {
  handle: string;
  name: string;
  user: string;
  state: string;
  reason: string;
  /** For a person: nodes, devices. */
  where: string;
}

/** `warming`, `unknown`: keep waiting. */
export type Probe =
  | { kind: 'ready' | 'warming' | 'unknown'; reason: string }
  | { kind: 'failed'; failure: FailureClass; reason: string };
