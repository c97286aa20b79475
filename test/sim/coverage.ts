/**
 * "Sometimes": states that a good run must have reached, counted. A run that misses one is too
 * tame.
 */
import type { AttemptRow } from '../../src/store/database.ts';
import type { Change, Commit, Mirror } from './checkers/mirror.ts';
import type { ProvisionSometimes } from './provision/sometimes.ts';

export const SOMETIMES = [
  'gang in a later round',
  'gang member done, round failed',
  'attempt lost by its lease',
  'attempt ended by the watchdog',
  'attempt lost with its agent',
  'exit code of an adopted attempt',
  'exit code after a controller restart',
  'task out of retries',
  'task timed out',
  'task given up waiting',
  'cancel while pending',
  'cancel while assigned',
  'cancel while running',
  'worker suspect, then back',
  'worker lost, then rejoined',
  'worker joined over itself',
  'worker drained',
  'stale placement',
  'superseded sync',
  'unknown attempt told to stop',
  'submit repeated',
  'submit repeated after an unknown commit',
  'second body refused',
  'commit failed',
  'commit unknown',
  'controller crash before commit',
  'controller crash after commit',
  'controller crash with changes applied',
  'controller crash before an answer',
  'controller crash with a plan in hand',
  'controller crash at any time',
  'controller paused',
  'agent crash at an effect',
  'agent crash at any time',
  'agent paused',
  'agent forgot its identity',
  'agent token refused',
  'machine rebooted',
  'machine wiped',
  'machine cut off',
  'machine cut off one way',
  'clock stepped',
  'budget set',
  'budget changed',
  'budget deleted',
  'priority changed',
  'task nominated',
  'nominated, then assigned',
  'nomination withdrawn',
  'attempt preempted',
  'checkpoint stored',
  'checkpoint of a lost attempt refused',
  'attempt resumed',
  'attempt charged',
  'charge refunded',
  'job stopped by its cost limit',
  'attempt stopped by a budget',
  'job went on after another',
  'job given up after another',
  'after refused',
  'job submitted by a job',
  'job submitted too late',
  'child ended with its parent',
  "another tenant's job not found",
  'log followed to its end',
  'events followed to the end',
] as const;
export type Sometimes = (typeof SOMETIMES)[number];

export type Counts = Record<string, number>;

export class Coverage {
  readonly counts: Counts = {};
  readonly #mirror: Mirror;
  readonly #bootOf = new Map<string, number>();
  readonly #lostMachines = new Set<string>();
  boots = 0;
  /** Attempts that were running when an agent started. */
  readonly adopted = new Set<string>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  saw(what: Sometimes | ProvisionSometimes, times = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + times;
  }

  committed(commit: Commit): void {
    for (const change of commit.attempts) this.#attempt(change);
    for (const { micros, account } of commit.ledger) {
      if (account.startsWith('user/')) this.saw(micros < 0 ? 'charge refunded' : 'attempt charged');
    }
    for (const { row } of commit.jobs) {
      if (row.cancelled_by?.startsWith('its cost limit')) this.saw('job stopped by its cost limit');
      if (row.cancelled_by?.startsWith('the end of its parent')) {
        this.saw('child ended with its parent');
      }
    }
    for (const { before, row } of commit.tasks) {
      if (before?.round_done === 1 && row.state === 'PENDING') {
        this.saw('gang member done, round failed');
      }
      if (row.state === 'UNSCHEDULABLE') {
        const after = /this one was to run after/.test(row.reason);
        this.saw(after ? 'job given up after another' : 'task given up waiting');
      }
      if (row.state === 'FAILED' && /retries are used/.test(row.reason))
        this.saw('task out of retries');
      const waited = (before?.state ?? 'PENDING') === 'PENDING' && row.state === 'CANCELLED';
      if (waited) this.saw('cancel while pending');
    }
    for (const { before, row } of commit.workers) {
      if (before?.state === 'SUSPECT' && row.state === 'ONLINE')
        this.saw('worker suspect, then back');
      if (before && before.token_hash !== row.token_hash) this.saw('worker joined over itself');
      if (before?.draining === 0 && row.draining === 1) this.saw('worker drained');
      if (row.state === 'LOST') this.#lostMachines.add(row.machine);
      else if (!before && this.#lostMachines.has(row.machine))
        this.saw('worker lost, then rejoined');
    }
  }

  #attempt({ before, row }: Change<AttemptRow>): void {
    if (!before) {
      this.#bootOf.set(row.uid, this.boots);
      if (row.round > 0) this.saw('gang in a later round');
      const spec = this.#mirror.jobs.get(row.job)?.spec ?? '';
      if (spec.includes('"after":')) this.saw('job went on after another');
    }
    if (
      row.state === 'STOPPING' &&
      before?.state !== 'STOPPING' &&
      row.stop_cause === 'cancelled'
    ) {
      this.saw(before?.started_at_ms === null ? 'cancel while assigned' : 'cancel while running');
    }
    if (row.state === 'STOPPING' && /budget of .* is used up/.test(row.message)) {
      this.saw('attempt stopped by a budget');
    }
    if (row.state !== 'ENDED') return;
    if (row.cause === 'timed-out') this.saw('task timed out');
    if (row.cause === 'lost' && /silent/.test(row.message)) this.saw('attempt lost by its lease');
    if (row.cause === 'lost' && /no longer knows|restarted/.test(row.message)) {
      this.saw('attempt lost with its agent');
    }
    if (row.cause !== 'exited') return;
    if (this.adopted.has(row.uid)) this.saw('exit code of an adopted attempt');
    if (this.#bootOf.get(row.uid) !== this.boots) this.saw('exit code after a controller restart');
  }

  /** Whether a committed attempt exists: a planned one that does not was refused as stale. */
  knows(uid: string): boolean {
    return this.#mirror.attempt(uid) !== undefined;
  }
}

export function addCounts(into: Counts, more: Counts): void {
  for (const [what, times] of Object.entries(more)) into[what] = (into[what] ?? 0) + times;
}

export function missingFrom(counts: Counts, wanted: readonly string[] = SOMETIMES): string[] {
  return wanted.filter((what) => !counts[what]);
}
