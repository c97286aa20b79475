/** Why a job waits: what holds it, in the order the planner would meet it, and who goes first. */
import type { Explanation } from '../core/explain.ts';
import type { AheadRule, QueuePosition } from '../core/explain/position.ts';
import { jobState } from '../core/lifecycle/job.ts';
import type { Clock } from '../lib/clock.ts';
import type { JobId } from '../model/ids.ts';
import type { Principal } from '../model/token.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { JobView } from '../protocol/jobs.ts';
import { AHEAD_SAMPLE, type WhyView } from '../protocol/why.ts';
import type { LiveJob } from '../state/live.ts';
import { IDLE_BEGINNING } from '../state/observe.ts';
import { requestOf } from '../state/requests.ts';
import type { State } from '../state/state.ts';
import type { Planner, PlannerWhy } from './planner.ts';
import type { PoolLoops } from './pools/loops.ts';
import { withMachines } from './whyMachines.ts';
import { asPlanned } from './whyWorkers.ts';

export interface WhyOptions {
  state: State;
  planner: Planner;
  /** The planner has heard of all that happened until now. */
  settled: () => Promise<void>;
  clock: Clock;
  /** Why the head of each class waits, from the last plan. */
  reasons: ReadonlyMap<string, Explanation>;
  getJob: (who: Principal, id: string) => Promise<JobView>;
  poolLoops: PoolLoops;
}

/** What holds a job, without its place in the queue. */
export type Hold = Pick<WhyView, 'code' | 'sentence' | 'suggestions'> &
  Partial<Pick<WhyView, 'workers' | 'quota' | 'predictedStartAtMs'>>;

const AHEAD_RULES: Record<AheadRule, string> = {
  band: 'it is of a higher band',
  aged: 'it has waited longer',
  share: 'its owner has the smaller share',
  age: 'it is older',
};

export function createWhy(options: WhyOptions): Pick<Coordinator, 'why'> {
  const { state, planner, clock, getJob } = options;
  return {
    async why(who, id) {
      const live = state.jobs.get(id as JobId);
      const own = live?.job.tenant === who.tenant && live.job.endedAtMs === null;
      const waits = own && live.counts.PENDING > 0 && !live.waitsFor;
      if (waits) await options.settled();
      const planned = waits
        ? await planner.explain(live.job.id, requestOf(live.job), clock.now())
        : null;
      // Before the wait for the commit: what was computed belongs to one moment.
      const alive = own ? explainLive(options, live, planned, clock.now()) : null;
      const job = await getJob(who, id);
      return alive ?? explainEnded(job, clock.now());
    },
  };
}

function explainEnded(job: JobView, nowMs: number): WhyView {
  const reason = job.reason ? `: ${job.reason}` : '';
  return {
    ...NOWHERE,
    job: job.id,
    state: job.state,
    code: 'ENDED',
    sentence: `it has ended, ${job.state}${reason}`,
    suggestions: [],
    tasks: { waiting: 0, running: 0 },
    atMs: nowMs,
  };
}

function explainLive(
  { state, reasons, poolLoops }: WhyOptions,
  live: LiveJob,
  planned: PlannerWhy | null,
  nowMs: number,
): WhyView {
  const hold =
    notWaiting(live) ??
    waitsForJobs(state, live) ??
    backsOff(live, nowMs) ??
    atArrayLimit(live) ??
    withMachines(
      asPlanned(state, live, planned?.why ?? reasons.get(live.classKey), nowMs),
      ...([state, live, poolLoops, nowMs] as const),
    );
  const { PENDING, ASSIGNED, RUNNING } = live.counts;
  return {
    ...NOWHERE,
    ...(planned?.position && placeInQueue(state, planned.position)),
    predictedStartAtMs: planned?.predictedStartAtMs ?? null,
    ...hold,
    job: live.job.id,
    state: jobState(live.counts),
    tasks: { waiting: PENDING, running: ASSIGNED + RUNNING },
    atMs: nowMs,
  };
}

const NOWHERE: Pick<
  WhyView,
  'workers' | 'position' | 'ahead' | 'aheadSample' | 'rule' | 'quota' | 'predictedStartAtMs'
> = {
  workers: [],
  position: null,
  ahead: null,
  aheadSample: [],
  rule: '',
  quota: null,
  predictedStartAtMs: null,
};

function notWaiting(live: LiveJob): Hold | null {
  const { job, counts } = live;
  if (job.cancelRequestedAtMs !== null) {
    const sentence = 'it was cancelled, and its running tasks are being stopped';
    return { code: 'CANCELLING', sentence, suggestions: [] };
  }
  if (counts.PENDING > 0) return null;
  const idle = idleMessage(live);
  if (idle) {
    const suggestions = [`see what it does: drover metrics ${job.id}`, `drover ps ${job.id}`];
    return { code: 'RUNNING', sentence: `it runs, but ${idle}`, suggestions };
  }
  const sentence =
    counts.RUNNING > 0 ? 'it runs; nothing of it waits' : 'it has its worker and is about to start';
  return { code: 'RUNNING', sentence, suggestions: [] };
}

/** What was last said of a running task whose devices have nothing to do. */
function idleMessage({ attempts }: LiveJob): string | undefined {
  for (const { message } of attempts.values()) {
    if (message.startsWith(IDLE_BEGINNING)) return message;
  }
  return undefined;
}

function waitsForJobs(state: State, { job, waitsFor }: LiveJob): Hold | null {
  if (!waitsFor) return null;
  const awaited = job.spec.after.filter(({ job: id }) => waitsFor.has(id));
  const open = awaited.map(({ job: id, when }) => {
    const name = state.jobs.get(id)?.job.spec.name;
    const how = { ok: 'succeeded', failed: 'failed', any: 'ended' }[when];
    return `${id}${name ? ` (${name})` : ''} has ${how}`;
  });
  const shown = open.slice(0, AHEAD_SAMPLE).join(', and ');
  const more = open.length > AHEAD_SAMPLE ? `, and ${open.length - AHEAD_SAMPLE} more have` : '';
  return {
    code: 'AFTER',
    sentence: `it starts when ${shown}${more}`,
    suggestions: awaited.slice(0, 1).map(({ job: id }) => `see what holds it: drover why ${id}`),
  };
}

/** A task that failed starts again after a pause; with another one ready, that is the reason. */
function backsOff({ tasks }: LiveJob, nowMs: number): Hold | null {
  let next: LiveJob['tasks'][number] | null = null;
  for (const task of tasks) {
    if (task.state !== 'PENDING') continue;
    if (task.notBeforeMs <= nowMs) return null;
    if (!next || task.notBeforeMs < next.notBeforeMs) next = task;
  }
  if (!next) return null;
  const seconds = Math.ceil((next.notBeforeMs - nowMs) / 1000);
  const before = next.reason ? ` (${next.reason})` : '';
  return {
    code: 'BACKOFF',
    sentence: `task ${next.index} starts again in ${seconds} s${before}`,
    suggestions: [],
    predictedStartAtMs: next.notBeforeMs,
  };
}

function atArrayLimit({ job, counts }: LiveJob): Hold | null {
  const { shape } = job.spec;
  if (shape.kind !== 'array' || shape.limit === 0) return null;
  if (counts.ASSIGNED + counts.RUNNING < shape.limit) return null;
  return {
    code: 'ARRAY_LIMIT',
    sentence: `${shape.limit} of its tasks run, and it asked for no more at once`,
    suggestions: [`submit it with more at once: --array …%${shape.limit * 2}`],
  };
}

/** Among the tenant's own work: another tenant's is neither shown nor counted. */
function placeInQueue(
  state: State,
  { ahead, ownAhead, aheadSample, rule }: QueuePosition,
): Pick<WhyView, 'position' | 'ahead' | 'aheadSample' | 'rule'> {
  const sample = aheadSample.slice(0, AHEAD_SAMPLE).map(({ job, rule: by }) => ({
    job,
    name: state.jobs.get(job)?.job.spec.name ?? '',
    rule: AHEAD_RULES[by],
  }));
  const others = ahead > ownAhead ? '; work of other tenants goes first, too' : '';
  return {
    position: ownAhead + 1,
    ahead: ownAhead,
    aheadSample: sample,
    rule: rule + others,
  };
}
