/** Watches attempts while they run, and has what they left kept before their end is told. */
import { join } from 'node:path';
import type { AttemptOrder, Observation } from '../../protocol/agent.ts';
import { membersOf } from './advance.ts';
import type { Attempt, Machine } from './attempt.ts';
import type { Around, Kept } from './around.ts';
import type { End } from './ending.ts';
import { readKept, readPrepared, readProcesses, replaceFile } from './folder.ts';
import { signalGroup } from './processes.ts';
import type { Task } from './task.ts';
import { useOf } from './use.ts';

/** What could not be kept is tried again after this long. */
const RETRY_MS = 2000;

export interface KeeperHost {
  taskOf: (attempt: Attempt, order: AttemptOrder) => Task;
  look: (uid: string) => void;
  changed: () => void;
}

export class Keeper {
  readonly #machine: Machine;
  readonly #around: Around | undefined;
  readonly #host: KeeperHost;
  readonly #watches = new Map<string, () => void>();
  #closed = false;

  constructor(machine: Machine, around: Around | undefined, host: KeeperHost) {
    this.#machine = machine;
    this.#around = around;
    this.#host = host;
  }

  /** Called whenever an attempt is in another state than before. */
  moved(attempt: Attempt, state: Observation['state']): void {
    if (state === 'RUNNING' && !attempt.held) this.#watch(attempt);
    if (state === 'ENDED') this.#unwatch(attempt.uid);
  }

  /** Undefined while it goes on; the attempt is looked at again when it is done. */
  keep(attempt: Attempt, how: End): Kept | undefined {
    const around = this.#around;
    const { order } = attempt;
    if (!around || !order || !around.needsFinish(order, attempt.directory, how)) return {};
    const kept = readKept(attempt.directory);
    if (kept) return kept;
    if (!attempt.finishing && !this.#closed) {
      this.#unwatch(attempt.uid);
      void this.#finish(around, attempt, order, how);
    }
    return undefined;
  }

  close(attempts: Iterable<Attempt>): void {
    this.#closed = true;
    for (const { finishing } of attempts) finishing?.abort();
    for (const end of this.#watches.values()) end();
    this.#watches.clear();
  }

  #taskOf(attempt: Attempt, order: AttemptOrder): Task {
    return readPrepared(attempt.directory)?.task ?? this.#host.taskOf(attempt, order);
  }

  #watch(attempt: Attempt): void {
    const { order } = attempt;
    if (!order || !this.#around || this.#watches.has(attempt.uid)) return;
    const end = this.#around.watch({
      order,
      home: attempt.directory,
      task: () => this.#taskOf(attempt, order),
      pids: () => membersOf(this.#machine, attempt),
      use: () =>
        useOf(this.#machine.cgroups, attempt.cgroups, () => membersOf(this.#machine, attempt)),
      tellIdle: (idle) => this.#tellIdle(attempt, idle),
      signalGroup(signal) {
        const processes = readProcesses(attempt.directory);
        if (processes && processes !== 'none') signalGroup(processes, signal);
      },
    });
    if (end) this.#watches.set(attempt.uid, end);
  }

  #tellIdle(attempt: Attempt, idle: Observation['idle']): void {
    attempt.idle = idle;
    if (attempt.observation.state !== 'RUNNING') return;
    const { idle: _, ...observation } = attempt.observation;
    attempt.observation = { ...observation, ...(idle && { idle }) };
    this.#host.changed();
  }

  #unwatch(uid: string): void {
    this.#watches.get(uid)?.();
    this.#watches.delete(uid);
  }

  /** Written down before it is told, so that the next agent tells the same. */
  async #finish(around: Around, attempt: Attempt, order: AttemptOrder, how: End): Promise<void> {
    const finishing = new AbortController();
    attempt.finishing = finishing;
    const { signal } = finishing;
    const home = attempt.directory;
    const keptFile = join(home, 'kept.json');
    const say = (progress: string): void => {
      if (signal.aborted || attempt.observation.progress === progress) return;
      attempt.observation = { ...attempt.observation, progress };
      this.#host.changed();
    };
    try {
      const task = this.#taskOf(attempt, order);
      const kept = await around.finish({ order, home, task, how, signal, say });
      if (!this.#closed) replaceFile(keptFile, JSON.stringify(kept));
    } catch (error) {
      // Whoever aborts it wants nothing kept, unless it is the end of this agent.
      if (!signal.aborted) {
        this.#machine.log.warn({ attempt: attempt.uid, error }, 'not kept yet; trying again');
      } else if (!this.#closed) replaceFile(keptFile, '{}');
    }
    attempt.finishing = undefined;
    if (this.#closed) return;
    if (readKept(home)) this.#host.look(attempt.uid);
    else this.#machine.clock.setTimer(RETRY_MS, () => this.#host.look(attempt.uid));
  }
}
