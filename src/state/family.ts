/** Which live jobs were submitted by which, and which names are taken. */
import type { JobId } from '../model/ids.ts';
import type { Job, JobSpec } from '../model/job.ts';
import { cancel } from './cancel.ts';
import type { LiveJob } from './live.ts';
import type { Submit } from './mutations.ts';
import type { State } from './state.ts';

export class Family {
  readonly #children = new Map<JobId, Set<LiveJob>>();
  /** By tenant, parent and name. Null until somebody asks: most never do. */
  #names: Map<string, Set<LiveJob>> | null = null;

  add(live: LiveJob): void {
    const { parent } = live.job;
    if (parent !== null) addTo(this.#children, parent, live);
    if (this.#names) addTo(this.#names, nameKey(live.job), live);
  }

  remove(live: LiveJob): void {
    const { parent } = live.job;
    if (parent !== null) removeFrom(this.#children, parent, live);
    if (this.#names) removeFrom(this.#names, nameKey(live.job), live);
  }

  childrenOf(job: JobId): Iterable<LiveJob> {
    return this.#children.get(job) ?? [];
  }

  /** One of `jobs`, which are all there are, that has this name and has not ended. */
  named(
    jobs: ReadonlyMap<JobId, LiveJob>,
    { tenant, parent }: Pick<Submit, 'tenant' | 'parent'>,
    spec: JobSpec,
  ): LiveJob | undefined {
    if (!this.#names) {
      this.#names = new Map();
      for (const live of jobs.values()) addTo(this.#names, nameKey(live.job), live);
    }
    for (const live of this.#names.get(nameKey({ tenant, parent: parent ?? null, spec })) ?? []) {
      if (live.job.endedAtMs === null) return live;
    }
    return undefined;
  }
}

/** What becomes of a submission whose names are taken: one entry for each spec that is. */
export type Taken = Map<number, { rule: 'keep' | 'replace'; live: LiveJob }>;

/** The name that may not be taken twice but would be; nothing has changed then. */
export function takenNames(
  state: State,
  submission: Submit,
): Taken | { refused: string; job: JobId | null } {
  const taken: Taken = new Map();
  const mine = new Set<string>();
  for (const [at, spec] of submission.specs.entries()) {
    const rule = spec.rules?.nameTaken ?? 'allow';
    if (rule === 'allow' || spec.name === '') continue;
    const live = state.family.named(state.jobs, submission, spec);
    if (mine.has(spec.name) || (live && rule === 'error')) {
      return { refused: spec.name, job: live?.job.id ?? null };
    }
    mine.add(spec.name);
    if (live && rule !== 'error') taken.set(at, { rule, live });
  }
  return taken;
}

/** Only jobs that say something about their name need the look. */
export function mindsNames(specs: readonly JobSpec[]): boolean {
  return specs.some(({ rules }) => rules !== undefined && rules.nameTaken !== 'allow');
}

/** A job has ended: those it submitted end with it, unless they were told to go on. */
export function endChildren(state: State, job: Job, nowMs: number): void {
  for (const child of [...state.family.childrenOf(job.id)]) {
    if (child.job.endedAtMs !== null || child.job.spec.rules?.outliveParent) continue;
    const by = `the end of its parent ${job.id}`;
    cancel(state, { kind: 'cancel', job: child.job.id, by }, nowMs);
  }
}

function nameKey({ tenant, parent, spec }: Pick<Job, 'tenant' | 'parent' | 'spec'>): string {
  return `${tenant}\n${parent ?? ''}\n${spec.name}`;
}

function addTo<Key>(map: Map<Key, Set<LiveJob>>, key: Key, live: LiveJob): void {
  const known = map.get(key);
  if (known) known.add(live);
  else map.set(key, new Set([live]));
}

function removeFrom<Key>(map: Map<Key, Set<LiveJob>>, key: Key, live: LiveJob): void {
  const known = map.get(key);
  known?.delete(live);
  if (known?.size === 0) map.delete(key);
}
