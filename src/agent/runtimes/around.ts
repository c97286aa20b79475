/**
 * What is done around a command: fetched and built before it starts, kept when it is over. The
 * runtime calls these; the steps of agent/around.ts do the work.
 */
import type { AttemptOrder, Observation } from '../../protocol/agent.ts';
import type { End } from './ending.ts';
import type { Task } from './task.ts';
import type { Use } from './use.ts';

/** One attempt on its way to its start. */
export interface Preparation {
  order: AttemptOrder;
  /** Entries made here are moved into `home` right before the start: work, inputs, … */
  stage: string;
  /** The attempt's own directory. Variables and commands name paths below it, not the stage. */
  home: string;
  /** What the command will run with; steps change it in place. */
  task: Task;
  /** By name, for later steps; never written down. */
  secrets: Record<string, string>;
  /** What it runs with, for the record: kept with the attempt. */
  facts: Record<string, string>;
  /** Aborted when the attempt is stopped or the agent ends. */
  signal: AbortSignal;
  /** For a person: what goes on. */
  say: (progress: string) => void;
}

/** One attempt whose processes are gone. */
export interface Finish {
  order: AttemptOrder;
  home: string;
  /** What the command ran with. */
  task: Task;
  how: End;
  signal: AbortSignal;
  say: (progress: string) => void;
}

/** What is told with the end: the manifest of the result, or that it could not be kept. */
export type Kept = Pick<
  Observation,
  'result' | 'unstored' | 'message' | 'held' | 'facts' | 'hostFault'
>;

/** An attempt that has started, until it is over. */
export interface Started {
  order: AttemptOrder;
  home: string;
  /** Read from disk: only for those who need it. */
  task: () => Task;
  /** Processes of the attempt that run now. */
  pids: () => number[];
  /** What it has used of CPU and memory. Reads files of the system. */
  use: () => Use;
  /** Its devices have nothing to do, or have again. Told with the next sync. */
  tellIdle: (idle: Observation['idle']) => void;
  /** To the whole group, as a stop would send it. */
  signalGroup: (signal: NodeJS.Signals) => void;
}

export interface Around {
  /** Whether anything must be done before this one can start. */
  needsPreparation(order: AttemptOrder): boolean;
  /** Throws `Unprepared` when the order cannot be met, anything else when the machine failed. */
  prepare(preparation: Preparation): Promise<void>;
  /** It runs now; also called for those an earlier agent started. Returns what ends the watch. */
  watch(started: Started): (() => void) | undefined;
  needsFinish(order: AttemptOrder, home: string, how: End): boolean;
  /** Called again by the next agent if this one ends before it resolves. */
  finish(finish: Finish): Promise<Kept>;
}

/** What was asked for cannot be had: told to the user as it is. */
export class Unprepared extends Error {
  /** The machine lacks something that another may have. */
  readonly hostFault: boolean;

  constructor(message: string, options: { hostFault?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'Unprepared';
    this.hostFault = options.hostFault ?? false;
  }
}
