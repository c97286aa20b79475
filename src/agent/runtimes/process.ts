/** The process runtime: attempts as plain processes of this machine, which outlive the agent. */
import { rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { METRICS_FILE } from '../../model/metric.ts';
import { systemRandom } from '../../lib/random.ts';
import type { AttemptOrder, StopOrder } from '../../protocol/agent.ts';
import { bootId as readBootId } from '../devices/machine.ts';
import { advance, membersOf, writeStop } from './advance.ts';
import { newAttempt, type Attempt, type Machine } from './attempt.ts';
import { detectCgroups, favourAgent, joinCgroups, type LimitKind } from './cgroups.ts';
import { claimFolder, findTool } from './claim.ts';
import type { LocalAttempt } from './contract.ts';
import * as files from './folder.ts';
import type { ExecContext, ProcessRuntime, ProcessRuntimeOptions } from './processRuntime.ts';
import { RecentUids } from './recentUids.ts';
import { createShims, SHIM_SCRIPT, type Shims } from './shim.ts';
import { Keeper } from './keeper.ts';
import { NamedTimers } from './namedTimers.ts';
import { endUnstarted, startAttempt, type Starter } from './start.ts';
import { RESULT_FOLDER, taskEnvironment, type Task } from './task.ts';
import { openWake, type Wake } from './wake.ts';
import { ensureWatchdog, WATCHDOG_SCRIPT } from './watchdog.ts';

/** Processes and threads of one attempt: far above real use, far below the machine's. */
const PIDS_LIMIT = 16_384;
/** Where an order names no lease, and what is kept back of it: the protocol's defaults. */
const ATTEMPT_LEASE_MS = 300_000;
const KILL_MARGIN_MS = 15_000;
/** A lease is written anew once it moved this far: syncs come far more often than that. */
const LEASE_STEP_MS = 1000;
/** How often to see that the watchdog lives. */
const WATCHDOG_LOOK_MS = 2000;
/** The next shim is started so long after one was taken: not to compete with the new task. */
const REFILL_DELAY_MS = 20;

export function createProcessRuntime(options: ProcessRuntimeOptions): ProcessRuntime {
  return new Processes(options);
}

class Processes implements ProcessRuntime {
  readonly limits: LimitKind;
  readonly #options: ProcessRuntimeOptions;
  readonly #machine: Machine;
  readonly #attempts = new Map<string, Attempt>();
  readonly #forgotten = new RecentUids();
  readonly #shims: Shims;
  readonly #starter: Starter;
  readonly #keeper: Keeper;
  readonly #wake: Wake;
  /** By uid, and two of our own, which no uid can be. */
  readonly #timers: NamedTimers;
  #listeners: (() => void)[] = [];
  #changePending = false;
  #closed = false;

  constructor(options: ProcessRuntimeOptions) {
    this.#options = { ...options, dataDir: resolve(options.dataDir) };
    const { clock, log } = options;
    const folder = files.openDataFolder(this.#options.dataDir);
    const bootId = readBootId();
    claimFolder(folder);
    files.replaceFile(folder.shim, SHIM_SCRIPT);
    files.replaceFile(folder.watchdog, WATCHDOG_SCRIPT);
    const [setsid, mv] = [findTool('setsid'), findTool('mv')];
    const cgroups = options.cgroups === 'off' ? undefined : detectCgroups();
    if (options.favourAgent) favourAgent(cgroups, log);
    this.limits = cgroups?.kind ?? 'rlimit';
    this.#machine = { folder, bootId, clock, cgroups, log };
    this.#keeper = new Keeper(this.#machine, options.around, {
      taskOf: (attempt, order) => this.#task(attempt, order),
      look: (uid) => this.#look(uid),
      changed: () => this.#changed(),
    });
    this.#machine.keep = (attempt, how) => this.#keeper.keep(attempt, how);
    this.#timers = new NamedTimers(clock);
    this.#watch();
    this.#wake = openWake(folder.wake, (uid) => this.#look(uid));
    const random = options.random ?? systemRandom;
    this.#shims = createShims({ folder, bootId, mv, cgroups, random, log });
    this.#starter = {
      machine: this.#machine,
      around: options.around,
      shims: this.#shims,
      setsid,
      pidsLimit: options.pidsLimit ?? PIDS_LIMIT,
      look: (uid) => this.#look(uid),
      settled: () => this.#settled(),
      changed: () => this.#changed(),
    };
    for (const uid of files.listAttempts(folder)) this.#adopt(uid);
    this.#shims.refill();
  }

  list(): LocalAttempt[] {
    return [...this.#attempts.values()];
  }

  start(order: AttemptOrder, killAtBootMs?: number): void {
    const { uid } = order;
    if (this.#attempts.has(uid) || this.#forgotten.has(uid)) return;
    const attempt = this.#add(uid, order);
    const { killMarginMs = KILL_MARGIN_MS } = this.#options;
    const leaseMs = Math.max(0, attempt.attemptLeaseMs - killMarginMs);
    attempt.writtenLeaseBootMs = killAtBootMs ?? this.#machine.clock.bootMs() + leaseMs;
    startAttempt(this.#starter, attempt, order, this.#task(attempt, order));
    this.#settled();
  }

  stop(order: StopOrder): void {
    if (this.#forgotten.has(order.uid)) return;
    const killAtBootMs = this.#machine.clock.bootMs() + order.graceMs;
    let attempt = this.#attempts.get(order.uid);
    if (!attempt) {
      attempt = this.#add(order.uid, undefined);
      attempt.graceMs = order.graceMs;
      const message = 'stopped before it was started';
      endUnstarted(this.#machine, attempt, { message, exitCode: null }, false);
      return this.#changed();
    }
    if (attempt.observation.state === 'ENDED') return;
    const earlier = attempt.stop;
    if (earlier && earlier.killAtBootMs <= killAtBootMs) return;
    // Asked again: the first cause stays, the grace can only shrink.
    attempt.stop = earlier
      ? { ...earlier, killAtBootMs }
      : { cause: order.cause, killAtBootMs, signalled: false };
    writeStop(this.#machine, attempt, attempt.stop);
    attempt.starting?.abort();
    attempt.starting = undefined;
    // Nobody wants what it left: the controller does not know it any more.
    if (order.cause === 'lost') attempt.finishing?.abort();
    this.#look(order.uid);
  }

  forget(uid: string): void {
    const attempt = this.#attempts.get(uid);
    // An attempt that still runs cannot be forgotten: nobody would end it.
    if (attempt?.observation.state !== 'ENDED') return;
    this.#attempts.delete(uid);
    this.#forgotten.add(uid);
    this.#timers.cancel(uid);
    try {
      files.replaceFile(join(attempt.directory, 'forgotten'), '');
    } catch (error) {
      this.#machine.log.error({ attempt: uid, error }, 'cannot mark as forgotten');
    }
    this.#removeFiles(attempt);
  }

  renewLease(deadlines: { uid: string; killAtBootMs: number }[]): void {
    for (const { uid, killAtBootMs } of deadlines) {
      const attempt = this.#attempts.get(uid);
      if (!attempt || attempt.observation.state === 'ENDED') continue;
      const movedMs = killAtBootMs - attempt.writtenLeaseBootMs;
      if (movedMs >= 0 && movedMs < LEASE_STEP_MS) continue;
      try {
        files.writeLease(this.#machine.folder, uid, killAtBootMs);
        attempt.writtenLeaseBootMs = killAtBootMs;
      } catch (error) {
        this.#machine.log.error({ attempt: uid, error }, 'the lease could not be renewed');
      }
    }
  }

  onChange(changed: () => void): void {
    this.#listeners.push(changed);
  }

  outputFiles(uid: string): { stdout: string; stderr: string } {
    const directory = this.#directory(uid);
    return { stdout: join(directory, 'stdout'), stderr: join(directory, 'stderr') };
  }

  hasFiles(uid: string): boolean {
    return this.#attempts.get(uid)?.starting === undefined;
  }

  execContext(uid: string): ExecContext | undefined {
    const attempt = this.#attempts.get(uid);
    if (attempt?.observation.state !== 'RUNNING') return undefined;
    const order = files.readOrder(attempt.directory);
    if (!order) return undefined;
    const prepared = files.readPrepared(attempt.directory)?.task;
    const { env, workdir: cwd, enter } = prepared ?? this.#task(attempt, order);
    const members = (): number[] => membersOf(this.#machine, attempt);
    const joinCgroup = (pid: number): void => joinCgroups(attempt.cgroups, pid);
    const context = { cwd, env, members, ...(enter && { enter }) };
    return attempt.cgroups.length > 0 ? { ...context, joinCgroup } : context;
  }

  /** Attempts go on; the watchdog stays as long as one does. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { starting } of this.#attempts.values()) starting?.abort();
    this.#keeper.close(this.#attempts.values());
    this.#listeners = [];
    this.#timers.cancelAll();
    this.#wake.close();
    await this.#shims.close();
    rmSync(this.#machine.folder.agentPid, { force: true });
  }

  #settled(): void {
    this.#timers.set(':refill', REFILL_DELAY_MS, () => this.#shims.refill());
    this.#changed();
  }

  #task(attempt: Attempt, order: AttemptOrder): Task {
    const env = taskEnvironment(order, this.#options.machineHasGpus ?? false);
    env['DROVER_RESULT_DIR'] = join(attempt.directory, RESULT_FOLDER);
    env['DROVER_METRICS_FILE'] = join(attempt.directory, METRICS_FILE);
    return {
      command: order.command,
      env,
      workdir: resolve(attempt.directory, 'work', order.workdir),
    };
  }

  #adopt(uid: string): void {
    const directory = this.#directory(uid);
    const record = files.readEnd(directory);
    const attempt = this.#add(uid, files.readOrder(directory));
    attempt.cgroups = files.readCgroupDirectories(directory);
    attempt.stop = files.readStop(directory);
    attempt.facts = files.readPrepared(directory)?.facts;
    attempt.held = files.readHeld(directory);
    if (record) {
      attempt.observation = record.observation;
      attempt.attemptLeaseMs = record.attemptLeaseMs;
      attempt.graceMs = record.graceMs;
      files.removeLease(this.#machine.folder, uid);
    }
    if (files.readIfThere(join(directory, 'forgotten')) !== undefined) {
      this.#attempts.delete(uid);
      this.#forgotten.add(uid);
      this.#removeFiles(attempt);
      return;
    }
    this.#look(uid);
  }

  #add(uid: string, order: AttemptOrder | undefined): Attempt {
    const attempt = newAttempt(uid, this.#directory(uid), order);
    if (attempt.attemptLeaseMs === 0) attempt.attemptLeaseMs = ATTEMPT_LEASE_MS;
    this.#attempts.set(uid, attempt);
    return attempt;
  }

  #removeFiles(attempt: Attempt): void {
    const remove = async (): Promise<void> => {
      await this.#options.beforeForget?.(attempt.uid);
      this.#machine.cgroups?.remove(attempt.cgroups);
      // Whoever has just written there (the spool, a dying task) may make a first try fail.
      await rm(attempt.directory, { recursive: true, force: true, maxRetries: 10 });
    };
    remove().catch((error: unknown) =>
      this.#machine.log.error({ attempt: attempt.uid, error }, 'files of an attempt are kept'),
    );
  }

  #look(uid: string): void {
    const attempt = this.#attempts.get(uid);
    if (!attempt || this.#closed) return;
    const before = attempt.observation;
    let nextMs: number | undefined;
    try {
      nextMs = advance(this.#machine, attempt);
    } catch (error) {
      this.#machine.log.error({ attempt: uid, error }, 'an attempt could not be looked after');
      nextMs = WATCHDOG_LOOK_MS;
    }
    if (nextMs === undefined) this.#timers.cancel(uid);
    else this.#timers.set(uid, nextMs, () => this.#look(uid));
    const { state, progress } = attempt.observation;
    if (state !== before.state) this.#keeper.moved(attempt, state);
    else if (progress === before.progress) return;
    this.#changed();
  }

  #watch(): void {
    const { folder, bootId, log } = this.#machine;
    ensureWatchdog(folder, this.#options.dataDir, bootId, log);
    this.#timers.set(':watchdog', WATCHDOG_LOOK_MS, () => this.#watch());
  }

  /** Told after the caller is done: a change may come from inside `start` or `stop`. */
  #changed(): void {
    if (this.#changePending) return;
    this.#changePending = true;
    queueMicrotask(() => {
      this.#changePending = false;
      for (const changed of this.#listeners) changed();
    });
  }

  #directory(uid: string): string {
    return files.attemptDirectory(this.#machine.folder, uid);
  }
}
