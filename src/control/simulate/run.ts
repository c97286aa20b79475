/**
 * One simulation: the production state, planner and schedule step on virtual time. There is no
 * store, no agent and no network; what is applied counts as committed, and ended jobs leave the
 * memory as they do after a commit.
 */
import type { Explanation } from '../../core/explain.ts';
import { neverFits } from '../../core/placement/admission.ts';
import { assert } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import type { ClusterId, JobId } from '../../model/ids.ts';
import type { Job, JobSpec } from '../../model/job.ts';
import { apply } from '../../state/apply.ts';
import type { JobEnding } from '../../state/changes.ts';
import type { Mutation, Result } from '../../state/mutations.ts';
import { State } from '../../state/state.ts';
import type { Planner } from '../planner.ts';
import { createScheduleStep } from '../schedule.ts';
import { Agenda } from './agenda.ts';
import { Charging, hasLimit } from './charging.ts';
import { admissionPolicies, type Fleet } from './fleet.ts';
import { Machines } from './machines.ts';
import { Measures } from './measures.ts';
import { openFleet } from './outages.ts';
import type { SimulatedJob } from './workload.ts';

export interface RunOptions {
  fleet: Fleet;
  /** In order of time. */
  jobs: Iterator<SimulatedJob>;
  startMs: number;
  horizonMs: number | null;
  planner: Planner;
  random: Random;
  /** Past use weighs half after this time. */
  halfLifeMs: number;
  /** How often it is planned; 0: whenever something has changed. */
  tickMs: number;
  startDelayMs: number;
  /** Real time, for the speed. */
  stopwatch: () => number;
  progress?: (simulatedMs: number, submitted: number) => void;
}

export interface Outcome {
  measures: Measures;
  machines: Machines;
  state: State;
  reasons: ReadonlyMap<string, Explanation>;
  /** Why jobs were refused at submission, and how many. */
  refused: Map<string, number>;
  endings: Map<JobEnding['state'], number>;
  submitted: number;
  elapsedMs: number;
  /** It was stopped by its horizon. */
  cut: boolean;
  plans: number;
  placements: number;
  planMs: number;
  wallMs: number;
}

/** More plans at one instant than any backlog needs: the planner goes round in circles. */
const PLANS_AT_ONCE = 100_000;
const PROGRESS_EVERY = 4096;

export async function runSimulation(options: RunOptions): Promise<Outcome> {
  const simulation = new Simulation(options);
  const beganMs = options.stopwatch();
  await simulation.run();
  return simulation.outcome(options.stopwatch() - beganMs);
}

class Simulation {
  readonly #options: RunOptions;
  readonly #agenda: Agenda;
  readonly #state: State;
  readonly #measures: Measures;
  readonly #machines: Machines;
  readonly #reasons = new Map<string, Explanation>();
  readonly #refused = new Map<string, number>();
  readonly #endings = new Map<JobEnding['state'], number>();
  readonly #live = new Map<JobId, SimulatedJob>();
  readonly #admitted = new WeakMap<JobSpec, { refusal: string | null }>();
  readonly #admission: ReturnType<typeof admissionPolicies>;
  readonly #step: () => Promise<void>;
  readonly #charging: Charging;
  #next: SimulatedJob | null;
  #submitted = 0;
  #planAtMs: number | null = null;
  #planning = false;
  #again = false;
  #cut = false;
  #plans = 0;
  #placements = 0;
  #planMs = 0;

  constructor(options: RunOptions) {
    this.#options = options;
    const { fleet, startMs, random, startDelayMs } = options;
    const agenda = new Agenda(startMs);
    const pools = fleet.pools.map(({ policy }) => policy);
    const state = new State(snapshot(startMs), { pools, halfLifeMs: options.halfLifeMs });
    const measures = new Measures(fleet, startMs);
    const mutate = (mutation: Mutation): Result => apply(state, mutation, agenda.now());
    const mutateAndPlan = (mutation: Mutation): Result => {
      const result = mutate(mutation);
      this.#hint();
      return result;
    };
    const jobOf = (id: JobId): SimulatedJob | undefined => this.#live.get(id);
    const core = { state, agenda, measures, random };
    const machines = new Machines({ ...core, startDelayMs, mutate, mutateAndPlan, jobOf });
    this.#agenda = agenda;
    this.#state = state;
    this.#measures = measures;
    this.#machines = machines;
    this.#admission = admissionPolicies(fleet);
    this.#step = createScheduleStep({
      state,
      planner: options.planner,
      mutate,
      clock: agenda,
      hint: () => this.#hint(),
      reasons: this.#reasons,
      placed: (tasks) => void (this.#placements += tasks),
    });
    this.#next = take(options.jobs);
    for (const { version: _, ...budget } of fleet.budgets) {
      mutate({ kind: 'set-budget', budget, by: 'the fleet file' });
    }
    openFleet(fleet, { ...core, machines, mutate: mutateAndPlan });
    this.#charging = new Charging({ state, agenda, mutate, hint: () => this.#hint() });
    if (fleet.budgets.some(hasLimit)) this.#charging.start();
  }

  async run(): Promise<void> {
    const { startMs, horizonMs } = this.#options;
    const untilMs = horizonMs === null ? Number.POSITIVE_INFINITY : startMs + horizonMs;
    this.#settle();
    for (;;) {
      const nextMs = this.#nextMs();
      if (nextMs === null) return;
      if (nextMs > untilMs) {
        this.#cut = true;
        this.#moveTo(untilMs);
        return;
      }
      this.#moveTo(nextMs);
      this.#submitDue();
      this.#agenda.runDue();
      this.#settle();
      if (this.#planAtMs !== null && this.#planAtMs <= nextMs) await this.#plan();
    }
  }

  outcome(wallMs: number): Outcome {
    this.#machines.finish();
    return {
      measures: this.#measures,
      machines: this.#machines,
      state: this.#state,
      reasons: this.#reasons,
      refused: this.#refused,
      endings: this.#endings,
      submitted: this.#submitted,
      elapsedMs: this.#agenda.now() - this.#options.startMs,
      cut: this.#cut,
      plans: this.#plans,
      placements: this.#placements,
      planMs: this.#planMs,
      wallMs,
    };
  }

  /** Null when nothing more can happen: no job will come, none runs, and none can be placed. */
  #nextMs(): number | null {
    let nextMs = this.#agenda.nextMs;
    if (!this.#next && this.#state.jobs.size === 0) return null;
    const busy = this.#agenda.busy || this.#charging.mayRelease;
    if (!this.#next && !busy && this.#planAtMs === null) return null;
    if (this.#next) {
      const atMs = this.#options.startMs + this.#next.atMs;
      nextMs = nextMs === null ? atMs : Math.min(nextMs, atMs);
    }
    if (this.#planAtMs === null) return nextMs;
    return nextMs === null ? this.#planAtMs : Math.min(nextMs, this.#planAtMs);
  }

  #moveTo(nowMs: number): void {
    this.#measures.advance(nowMs);
    this.#agenda.moveTo(nowMs);
  }

  #submitDue(): void {
    const { startMs, jobs, progress } = this.#options;
    const nowMs = this.#agenda.now();
    while (this.#next && startMs + this.#next.atMs <= nowMs) {
      this.#submit(this.#next);
      this.#next = take(jobs);
      if (this.#submitted % PROGRESS_EVERY === 0) progress?.(nowMs - startMs, this.#submitted);
    }
  }

  #submit(job: SimulatedJob): void {
    const { spec, tenant, user } = job;
    const { shape, priority } = spec;
    this.#submitted++;
    this.#measures.tenant(tenant).jobs++;
    this.#measures.waits.submitted(priority, shape.kind === 'array' ? shape.indices.length : 1);
    const refusal = this.#refusal(spec);
    if (refusal !== null) {
      this.#refused.set(refusal, (this.#refused.get(refusal) ?? 0) + 1);
      return;
    }
    const result = apply(
      this.#state,
      {
        kind: 'submit',
        tenant,
        owner: user,
        submittingPrincipal: user,
        specs: [spec],
        links: [],
        idempotencyKey: null,
        bodyHash: null,
      },
      this.#agenda.now(),
    );
    assert(result.kind === 'submitted', `a job could not be submitted: ${result.kind}`);
    const id = result.ids[0] as JobId;
    this.#live.set(id, job);
    this.#hint();
    if (spec.maxCostMicros > 0) this.#charging.start();
    if (spec.startWithinMs > 0) this.#giveUpLater(id, spec.startWithinMs);
  }

  /** Asked once for all jobs that share a spec. */
  #refusal(spec: JobSpec): string | null {
    let known = this.#admitted.get(spec);
    if (!known) {
      known = { refusal: neverFits(spec, this.#admission, new Set()) };
      this.#admitted.set(spec, known);
    }
    return known.refusal;
  }

  #giveUpLater(job: JobId, withinMs: number): void {
    const giveUp = (): void => {
      const live = this.#state.jobs.get(job);
      if (!live?.tasks.some((task) => task.state === 'PENDING' && task.attempts === 0)) return;
      const why = this.#reasons.get(live.classKey)?.sentence;
      const reason = `not started within ${withinMs / 1000} s${why ? `: ${why}` : ''}`;
      apply(this.#state, { kind: 'give-up', job, reason }, this.#agenda.now());
      this.#hint();
    };
    // In the background: what has started in time must not make the simulation any longer.
    this.#agenda.at(this.#agenda.now() + withinMs, giveUp, true);
  }

  #hint(): void {
    if (this.#planning) {
      this.#again = true;
      return;
    }
    if (this.#planAtMs !== null) return;
    const { tickMs, startMs } = this.#options;
    const nowMs = this.#agenda.now();
    this.#planAtMs =
      tickMs === 0 ? nowMs : startMs + Math.ceil((nowMs - startMs) / tickMs) * tickMs;
  }

  async #plan(): Promise<void> {
    const beganMs = this.#options.stopwatch();
    this.#planAtMs = null;
    let plans = 0;
    do {
      assert(plans++ < PLANS_AT_ONCE, 'the planner does not come to an end');
      this.#again = false;
      this.#planning = true;
      await this.#step();
      this.#planning = false;
      this.#settle();
    } while (this.#again);
    this.#plans += plans;
    this.#planMs += this.#options.stopwatch() - beganMs;
  }

  /** What a commit is followed by: agents hear of their attempts, ended jobs are forgotten. */
  #settle(): void {
    const state = this.#state;
    while (!state.changes.empty) {
      const changes = state.takeChanges();
      for (const [job, operation] of changes.jobs) {
        if (operation !== 'insert') continue;
        for (const task of state.jobs.get(job.id)?.tasks ?? [])
          this.#measures.isWaiting(task, true);
      }
      for (const task of changes.tasks.keys()) {
        this.#measures.isWaiting(task, task.state === 'PENDING');
      }
      for (const attempt of changes.attempts.keys()) this.#machines.noticed(attempt);
      if (changes.attempts.size > 0) this.#charging.wentOn();
      for (const [job, ending] of changes.endings) this.#ended(job, ending);
      state.evict(changes);
    }
    state.wake.clear();
  }

  #ended(job: Job, ending: JobEnding): void {
    this.#endings.set(ending.state, (this.#endings.get(ending.state) ?? 0) + 1);
    const live = this.#state.jobs.get(job.id);
    if (live) this.#machines.jobEnded(live);
    this.#live.delete(job.id);
  }
}

function take(jobs: Iterator<SimulatedJob>): SimulatedJob | null {
  const next = jobs.next();
  return next.done ? null : next.value;
}

function snapshot(startMs: number) {
  return {
    clusterId: 'c0simulated' as ClusterId,
    epoch: startMs,
    seq: 0,
    jobs: [],
    tasks: [],
    attempts: [],
    claims: [],
    workers: [],
    tokens: [],
    budgets: [],
    accounts: [],
    usageDays: [],
    idempotency: [],
  };
}
