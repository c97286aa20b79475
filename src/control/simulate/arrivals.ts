/** Jobs as they come: refused or submitted, as the server would, and remembered while they live. */
import type { Explanation } from '../../core/explain.ts';
import { neverFits, type PoolPolicy } from '../../core/placement/admission.ts';
import { AFTER_MEANINGS } from '../../core/lifecycle/after.ts';
import { assert } from '../../lib/errors.ts';
import type { JobId } from '../../model/ids.ts';
import type { After, Job, JobSpec, JobState } from '../../model/job.ts';
import type { Mutation, Result } from '../../state/mutations.ts';
import type { State } from '../../state/state.ts';
import type { Agenda } from './agenda.ts';
import type { Measures } from './measures.ts';
import type { SimulatedJob } from './workload.ts';

export interface ArrivalOptions {
  /** In order of time. */
  jobs: Iterator<SimulatedJob>;
  startMs: number;
  pools: PoolPolicy[];
  state: State;
  agenda: Agenda;
  measures: Measures;
  /** Why each class waits, as the planner said last. */
  reasons: ReadonlyMap<string, Explanation>;
  mutate: (mutation: Mutation) => Result;
  progress: (simulatedMs: number, submitted: number) => void;
}

const PROGRESS_EVERY = 4096;

export class Arrivals {
  submitted = 0;
  /** Why jobs were refused, and how many. */
  readonly refused = new Map<string, number>();
  readonly #options: ArrivalOptions;
  readonly #live = new Map<JobId, SimulatedJob>();
  readonly #admitted = new WeakMap<JobSpec, { refusal: string | null }>();
  /** The newest job of each name that others wait for; null while it lives. */
  readonly #named = new Map<string, { id: JobId; ended: JobState | null }>();
  #next: SimulatedJob | null;

  constructor(options: ArrivalOptions) {
    this.#options = options;
    this.#next = take(options.jobs);
  }

  /** When the next one comes; null: none does. */
  get nextMs(): number | null {
    return this.#next && this.#options.startMs + this.#next.atMs;
  }

  jobOf(id: JobId): SimulatedJob | undefined {
    return this.#live.get(id);
  }

  submitDue(): void {
    const { startMs, jobs, agenda, progress } = this.#options;
    const nowMs = agenda.now();
    while (this.#next && startMs + this.#next.atMs <= nowMs) {
      this.#submit(this.#next);
      this.#next = take(jobs);
      if (this.submitted % PROGRESS_EVERY === 0) progress(nowMs - startMs, this.submitted);
    }
  }

  ended(job: Job, state: JobState): void {
    const name = this.#live.get(job.id)?.remembered ?? null;
    const known = name === null ? undefined : this.#named.get(name);
    if (known?.id === job.id) known.ended = state;
    this.#live.delete(job.id);
  }

  #submit(job: SimulatedJob): void {
    const { measures, mutate } = this.#options;
    const { spec, tenant, user } = job;
    const { shape, priority } = spec;
    this.submitted++;
    measures.tenant(tenant).jobs++;
    measures.waits.submitted(priority, shape.kind === 'array' ? shape.indices.length : 1);
    const after = this.#resolve(job);
    const refusal = typeof after === 'string' ? after : this.#refusal(spec);
    if (refusal !== null || typeof after === 'string') {
      this.refused.set(refusal ?? '', (this.refused.get(refusal ?? '') ?? 0) + 1);
      return;
    }
    const result = mutate({
      kind: 'submit',
      tenant,
      owner: user,
      submittingPrincipal: user,
      specs: [after.length > 0 ? { ...spec, after } : spec],
      links: [],
      idempotencyKey: null,
      bodyHash: null,
    });
    assert(result.kind === 'submitted', `a job could not be submitted: ${result.kind}`);
    const id = result.ids[0] as JobId;
    this.#live.set(id, job);
    if (job.remembered !== null) this.#named.set(job.remembered, { id, ended: null });
    if (spec.startWithinMs > 0) this.#giveUpLater(id, spec.startWithinMs);
  }

  /** Asked once for all jobs that share a spec. */
  #refusal(spec: JobSpec): string | null {
    let known = this.#admitted.get(spec);
    if (!known) {
      known = { refusal: neverFits(spec, this.#options.pools, new Set()) };
      this.#admitted.set(spec, known);
    }
    return known.refusal;
  }

  /** The jobs it still waits for; text: why it can never start. */
  #resolve({ after }: SimulatedJob): After[] | string {
    const resolved: After[] = [];
    for (const { name, when } of after) {
      const other = this.#named.get(name);
      if (!other) return `no job "${name}" came before it`;
      if (other.ended === null) resolved.push({ job: other.id, when });
      else if (!AFTER_MEANINGS[when](other.ended)) {
        return `job "${name}" ended ${other.ended}; this one was to run after: ${when}`;
      }
    }
    return resolved;
  }

  #giveUpLater(job: JobId, withinMs: number): void {
    const { state, agenda, reasons, mutate } = this.#options;
    const giveUp = (): void => {
      const live = state.jobs.get(job);
      if (!live?.tasks.some((task) => task.state === 'PENDING' && task.attempts === 0)) return;
      const why = reasons.get(live.classKey)?.sentence;
      const reason = `not started within ${withinMs / 1000} s${why ? `: ${why}` : ''}`;
      mutate({ kind: 'give-up', job, reason });
    };
    // In the background: what has started in time must not make the simulation any longer.
    agenda.at(agenda.now() + withinMs, giveUp, true);
  }
}

function take(jobs: Iterator<SimulatedJob>): SimulatedJob | null {
  const next = jobs.next();
  return next.done ? null : next.value;
}
