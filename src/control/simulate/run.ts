/**
 * One simulation: the production state, planner and schedule step on virtual time. There is no
 * store, no agent and no network; what is applied counts as committed, and ended jobs leave the
 * memory as they do after a commit.
 */
import type { Explanation } from '../../core/explain.ts';
import { assert } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import type { ClusterId, JobId } from '../../model/ids.ts';
import type { Job } from '../../model/job.ts';
import { apply } from '../../state/apply.ts';
import type { JobEnding } from '../../state/changes.ts';
import type { Mutation, Result } from '../../state/mutations.ts';
import { emptySnapshot } from '../../state/live.ts';
import { State } from '../../state/state.ts';
import type { Planner } from '../planner.ts';
import { createScheduleStep } from '../schedule.ts';
import { Agenda } from './agenda.ts';
import { Arrivals } from './arrivals.ts';
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
const LOOP_PERIOD_MS = 1000;
/** Then planner and state do not agree, and nothing that waits will change that. */
const STALE_AT_MOST = 100;

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
  readonly #endings = new Map<JobEnding['state'], number>();
  readonly #arrivals: Arrivals;
  readonly #step: () => Promise<void>;
  readonly #charging: Charging;
  #planAtMs: number | null = null;
  #planning = false;
  #again = false;
  #cut = false;
  #plans = 0;
  #placements = 0;
  /** Plans in a row of which nothing could be applied. */
  #stalePlans = 0;
  #planMs = 0;

  constructor(options: RunOptions) {
    this.#options = options;
    const { fleet, startMs, random, startDelayMs } = options;
    const agenda = new Agenda(startMs);
    const pools = fleet.pools.map(({ policy }) => policy);
    const state = new State(emptySnapshot('c0simulated' as ClusterId, startMs), {
      pools,
      halfLifeMs: options.halfLifeMs,
    });
    const measures = new Measures(fleet, startMs);
    const mutate = (mutation: Mutation): Result => apply(state, mutation, agenda.now());
    const mutateAndPlan = (mutation: Mutation): Result => {
      const result = mutate(mutation);
      this.#hint();
      return result;
    };
    const jobOf = (id: JobId): SimulatedJob | undefined => this.#arrivals.jobOf(id);
    const core = { state, agenda, measures, random };
    const machines = new Machines({ ...core, startDelayMs, mutate, mutateAndPlan, jobOf });
    this.#agenda = agenda;
    this.#state = state;
    this.#measures = measures;
    this.#machines = machines;
    this.#arrivals = new Arrivals({
      ...core,
      jobs: options.jobs,
      startMs,
      pools: admissionPolicies(fleet),
      reasons: this.#reasons,
      mutate: mutateAndPlan,
      progress: options.progress ?? (() => undefined),
    });
    this.#step = createScheduleStep({
      state,
      planner: options.planner,
      mutate,
      clock: agenda,
      hint: () => this.#hint(),
      reasons: this.#reasons,
      placed: (tasks, staleTasks) => {
        this.#placements += tasks;
        this.#stalePlans = staleTasks > 0 && tasks === 0 ? this.#stalePlans + 1 : 0;
      },
    });
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
      this.#arrivals.submitDue();
      if (this.#state.costLimited.size > 0) this.#charging.start();
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
      refused: this.#arrivals.refused,
      endings: this.#endings,
      submitted: this.#arrivals.submitted,
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
    const arrivesMs = this.#arrivals.nextMs;
    if (arrivesMs === null && this.#state.jobs.size === 0) return null;
    const busy = this.#agenda.busy || this.#charging.mayRelease;
    if (arrivesMs === null && !busy && this.#planAtMs === null) return null;
    const times = [arrivesMs, this.#agenda.nextMs, this.#planAtMs];
    return times.reduce((a, b) => (a === null || b === null ? (a ?? b) : Math.min(a, b)));
  }

  #moveTo(nowMs: number): void {
    this.#measures.advance(nowMs);
    this.#agenda.moveTo(nowMs);
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
    // As the loop of a server would, on its next period; but not for ever.
    if (this.#stalePlans > 0 && this.#stalePlans < STALE_AT_MOST) {
      const laterMs = Math.max(this.#options.tickMs, LOOP_PERIOD_MS);
      this.#agenda.setTimer(laterMs, () => this.#hint());
    }
    this.#planMs += this.#options.stopwatch() - beganMs;
  }

  /** What a commit is followed by: agents hear of their attempts, ended jobs are forgotten. */
  #settle(): void {
    const state = this.#state;
    while (!state.changes.empty) {
      const changes = state.takeChanges();
      for (const [job, operation] of changes.jobs) {
        if (operation !== 'insert') continue;
        const { resources } = job.spec;
        for (const task of state.jobs.get(job.id)?.tasks ?? []) {
          this.#measures.waitsFor(task, resources);
        }
      }
      for (const task of changes.tasks.keys()) {
        const resources = state.jobs.get(task.job)?.job.spec.resources;
        if (resources && task.state === 'PENDING') this.#measures.waitsFor(task, resources);
        else this.#measures.waitsNoMore(task);
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
    this.#arrivals.ended(job, ending.state);
  }
}
