/** What the process runtime can do beyond the contract, and what it is given. */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { Around } from './around.ts';
import type { LimitKind } from './cgroups.ts';
import type { Runtime } from './contract.ts';

export interface ProcessRuntimeOptions {
  dataDir: string;
  clock: Clock;
  log: Log;
  random?: Random;
  /** `off`: rlimits even where cgroups could be made. */
  cgroups?: 'auto' | 'off';
  /** Then tasks without a GPU see none, by an empty CUDA_VISIBLE_DEVICES. */
  machineHasGpus?: boolean;
  /** This process is the agent's own: it goes before its tasks where CPU is short. */
  favourAgent?: boolean;
  pidsLimit?: number;
  killMarginMs?: number;
  /** What is done before commands start and after they are over; absent: nothing. */
  around?: Around;
  /**
   * Awaited between `forget` and the removal of the files: the log spool resolves it when
   * everything is uploaded. Asked again after a restart. A rejection keeps the files until the next
   * start.
   */
  beforeForget?: (uid: string) => Promise<void>;
}

export interface ExecContext {
  cwd: string;
  env: Record<string, string>;
  /** What leads a command to where the attempt's runs, see Task. */
  enter?: { piped: string[]; terminal: string[] };
  /** Puts a process under the attempt's limits; it is then ended with the attempt. */
  joinCgroup?: (pid: number) => void;
  /** The attempt's processes, those of people who look inside included. */
  members(): number[];
}

export interface ProcessRuntime extends Runtime {
  readonly limits: LimitKind;
  outputFiles(uid: string): { stdout: string; stderr: string };
  /** False while it is prepared or waits for its gang: its folder must stay empty. */
  hasFiles(uid: string): boolean;
  /** Undefined unless the attempt is running. */
  execContext(uid: string): ExecContext | undefined;
}
