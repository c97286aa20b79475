/**
 * The machines of a simulation: what agents would do with the attempts they are given, without
 * agents. An attempt runs for as long as its task is given to, unless it is stopped or its worker
 * is lost.
 */
import type { Timer } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import type { Attempt, EndCause } from '../../model/attempt.ts';
import type { Claim } from '../../model/claim.ts';
import { indexOfTask, type AttemptUid, type JobId, type WorkerId } from '../../model/ids.ts';
import type { LiveJob } from '../../state/live.ts';
import type { Mutation, Result } from '../../state/mutations.ts';
import type { State } from '../../state/state.ts';
import type { Agenda } from './agenda.ts';
import type { Measures } from './measures.ts';
import { durationOf, type SimulatedJob } from './workload.ts';

export interface MachinesOptions {
  state: State;
  agenda: Agenda;
  measures: Measures;
  random: Random;
  /** From placement to the command's start. */
  startDelayMs: number;
  /** What agents tell that a planner need not hear of at once. */
  mutate: (mutation: Mutation) => Result;
  /** What agents tell that frees capacity. */
  mutateAndPlan: (mutation: Mutation) => Result;
  jobOf: (id: JobId) => SimulatedJob | undefined;
}

interface Execution {
  attempt: Attempt;
  claim: Claim;
  pool: string;
  startedAtMs: number | null;
  /** Work done by earlier attempts. */
  savedMs: number;
  /** When it would end by itself. */
  endsAtMs: number;
  timer: Timer | null;
  stopping: boolean;
}

export class Machines {
  preemptions = 0;
  lost = 0;
  retried = 0;
  readonly #options: MachinesOptions;
  readonly #executions = new Map<AttemptUid, Execution>();
  /** Workers that are dead, whatever the state believes, and since when. */
  readonly #down = new Map<WorkerId, number>();
  /** Work done that an interruption does not undo, by task; of a gang by job. */
  readonly #saved = new Map<string, number>();

  constructor(options: MachinesOptions) {
    this.#options = options;
  }

  /** An attempt is new or has changed. */
  noticed(attempt: Attempt): void {
    const known = this.#executions.get(attempt.uid);
    if (attempt.state === 'ENDED') {
      if (known) this.#over(known);
    } else if (!known) this.#take(attempt);
    else if (attempt.state === 'STOPPING' && !known.stopping) this.#stop(known);
  }

  /** Nothing on it is heard of any more. */
  fail(worker: WorkerId): void {
    const { state, agenda } = this.#options;
    this.#down.set(worker, agenda.now());
    for (const uid of state.workers.get(worker)?.attempts.keys() ?? []) {
      this.#executions.get(uid)?.timer?.cancel();
    }
  }

  forget(worker: WorkerId): void {
    this.#down.delete(worker);
  }

  jobEnded(live: LiveJob): void {
    if (this.#saved.size === 0) return;
    this.#saved.delete(live.job.id);
    for (const task of live.tasks) this.#saved.delete(task.id);
  }

  /** What runs is counted up to now. */
  finish(): void {
    const nowMs = this.#options.agenda.now();
    for (const { attempt, claim, pool } of this.#executions.values()) {
      this.#options.measures.charge(claim, attempt.tenant, pool, nowMs - attempt.assignedAtMs);
    }
  }

  #take(attempt: Attempt): void {
    const { state, agenda, measures, startDelayMs } = this.#options;
    const claim = state.claims.get(attempt.uid);
    if (!claim) return;
    const pool = state.workers.get(attempt.worker)?.worker.pool ?? '';
    const execution: Execution = {
      attempt,
      claim,
      pool,
      startedAtMs: null,
      savedMs: 0,
      endsAtMs: Number.POSITIVE_INFINITY,
      timer: null,
      stopping: false,
    };
    this.#executions.set(attempt.uid, execution);
    measures.held(claim, attempt.tenant);
    if (this.#down.has(attempt.worker)) return;
    if (attempt.state === 'STOPPING') this.#stop(execution);
    else if (startDelayMs === 0) this.#start(execution);
    else execution.timer = agenda.setTimer(startDelayMs, () => this.#start(execution));
  }

  #start(execution: Execution): void {
    const { state, agenda, measures, mutate, jobOf } = this.#options;
    const { uid, worker, job: id, n } = execution.attempt;
    const live = state.jobs.get(id);
    const job = jobOf(id);
    if (!live || !job) return;
    execution.startedAtMs = agenda.now();
    mutate({
      kind: 'observe',
      worker,
      observed: [{ uid, state: 'RUNNING', ending: null }],
      complete: false,
    });
    const index = indexOfTask(execution.attempt.task);
    const { spec } = live.job;
    if (n === 1 && (spec.shape.kind !== 'gang' || index === 0)) {
      measures.waits.started(spec.priority, agenda.now() - live.job.createdAtMs);
    }
    this.#planEnd(execution, live, job, index);
  }

  #planEnd(execution: Execution, live: LiveJob, job: SimulatedJob, index: number): void {
    const { agenda, random } = this.#options;
    const position =
      live.tasks[index]?.index === index
        ? index
        : live.tasks.findIndex((task) => task.index === index);
    execution.savedMs = this.#saved.get(progressKey(live, execution.attempt)) ?? 0;
    let runMs = Math.max(0, durationOf(job, position) - execution.savedMs);
    let exitCode: number | null = job.exitCode;
    let cause: EndCause = 'exited';
    if (job.failures > 0 && random.next() < job.failures) {
      runMs = Math.floor(runMs * random.next());
      exitCode = 1;
    }
    const limitMs = live.job.spec.timeLimitMs;
    if (limitMs > 0 && runMs > limitMs) {
      runMs = limitMs;
      exitCode = null;
      cause = 'timed-out';
    }
    execution.endsAtMs = agenda.now() + runMs;
    execution.timer = agenda.at(execution.endsAtMs, () => this.#end(execution, cause, exitCode));
  }

  /** It has its grace; what ends by itself meanwhile has ended well. */
  #stop(execution: Execution): void {
    const { state, agenda } = this.#options;
    const { attempt } = execution;
    execution.stopping = true;
    if (this.#down.has(attempt.worker)) return;
    const live = state.jobs.get(attempt.job);
    const graceMs = execution.startedAtMs === null ? 0 : (live?.job.spec.graceMs ?? 0);
    if (live) this.#save(execution, live, agenda.now());
    if (execution.endsAtMs <= agenda.now() + graceMs) return;
    execution.timer?.cancel();
    const cause = attempt.stopCause ?? 'cancelled';
    execution.timer = agenda.setTimer(graceMs, () => this.#end(execution, cause, null));
  }

  #end({ attempt }: Execution, cause: EndCause, exitCode: number | null): void {
    const { uid, worker } = attempt;
    const ending = {
      cause,
      exitCode,
      signal: null,
      message: '',
      hostFault: false,
      stdoutBytes: 0,
      stderrBytes: 0,
    };
    this.#options.mutateAndPlan({
      kind: 'observe',
      worker,
      observed: [{ uid, state: 'ENDED', ending }],
      complete: false,
    });
  }

  #over(execution: Execution): void {
    const { state, agenda, measures } = this.#options;
    const { attempt, claim, pool } = execution;
    this.#executions.delete(attempt.uid);
    execution.timer?.cancel();
    measures.freed(claim, attempt.tenant, pool, agenda.now() - attempt.assignedAtMs);
    const found = state.task(attempt.task);
    if (attempt.cause === 'preempted') this.preemptions++;
    else if (attempt.cause === 'lost') {
      this.lost++;
      if (found && !execution.stopping) this.#saveLost(execution, found.live);
    } else if (attempt.cause !== 'gang-failed' && found?.task.state === 'PENDING') this.retried++;
  }

  /** Of what was lost with its machine, the last checkpoint is left. */
  #saveLost(execution: Execution, live: LiveJob): void {
    const { agenda, jobOf } = this.#options;
    const everyMs = jobOf(live.job.id)?.checkpointMs ?? 0;
    const diedAtMs = this.#down.get(execution.attempt.worker) ?? agenda.now();
    const ranMs = diedAtMs - (execution.startedAtMs ?? diedAtMs);
    if (everyMs > 0) this.#save(execution, live, diedAtMs - (ranMs % everyMs));
  }

  #save(execution: Execution, live: LiveJob, untilMs: number): void {
    const everyMs = this.#options.jobOf(live.job.id)?.checkpointMs ?? 0;
    if (everyMs === 0 || execution.startedAtMs === null) return;
    const ranMs = Math.max(0, untilMs - execution.startedAtMs);
    this.#saved.set(progressKey(live, execution.attempt), execution.savedMs + ranMs);
  }
}

/** Members of a gang go on together, from what all of them have saved. */
function progressKey(live: LiveJob, attempt: Attempt): string {
  return live.job.spec.shape.kind === 'gang' ? live.job.id : attempt.task;
}
