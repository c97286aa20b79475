/** A live server's history as a workload, and its workers as a fleet. */
import { freePool } from '../../core/placement/admission.ts';
import { DroverError } from '../../lib/errors.ts';
import { eachItem, type DroverClient } from '../../protocol/client.ts';
import type { WorkerView } from '../../protocol/fleet.ts';
import type { JobView, TaskView } from '../../protocol/jobs.ts';
import type { Fleet, WorkerGroup } from './fleet.ts';
import { Waits } from './waits.ts';
import type { SimulatedJob, Workload } from './workload.ts';

const PAGE = 500;
/** Calls in flight: a server has other users. */
const CALLS_AT_ONCE = 8;
const PORT_RANGE: [number, number] = [20_000, 29_999];

export interface HistoryOptions {
  client: DroverClient;
  sinceMs: number;
  /** What still runs has run until now. */
  nowMs: number;
  seed: number;
  progress: (text: string) => void;
}

export async function readHistory(options: HistoryOptions): Promise<Workload> {
  const { client, sinceMs, nowMs, seed, progress } = options;
  const waits = new Waits();
  const jobs: SimulatedJob[] = [];
  let unstarted = 0;
  let read = 0;
  const one = async (listed: JobView): Promise<void> => {
    const found = await simulatedJob(client, listed, nowMs);
    if (++read % PAGE === 0) progress(`${read} jobs read from ${client.url}`);
    if (!found) {
      unstarted++;
      return;
    }
    const { job, waitedMs } = found;
    waits.submitted(job.spec.priority, Array.isArray(job.durationMs) ? job.durationMs.length : 1);
    for (const ms of waitedMs) waits.started(job.spec.priority, ms);
    jobs.push(job);
  };
  await eachAtOnce(recentJobs(client, sinceMs), one);
  if (jobs.length === 0) {
    throw new DroverError('NOT_FOUND', `${client.url} has run no job in that time`, {
      hint: 'Look further back: --since 30d.',
    });
  }
  jobs.sort((a, b) => a.atMs - b.atMs);
  const startMs = jobs[0]?.atMs ?? 0;
  for (const job of jobs) job.atMs -= startMs;
  const skipped =
    unstarted === 0 ? [] : [{ reason: 'it has not run', count: unstarted, lines: [] }];
  return {
    startMs,
    horizonMs: null,
    summary: {
      source: 'server',
      name: client.url,
      seed,
      jobs: jobs.length,
      skipped,
      recorded: waits.rows(),
    },
    jobs: () => jobs.values(),
  };
}

/** The list is newest first. */
async function* recentJobs(client: DroverClient, sinceMs: number): AsyncGenerator<JobView> {
  for await (const job of eachItem((page) => client.listJobs(page), PAGE)) {
    if (job.createdAtMs < sinceMs) return;
    yield job;
  }
}

/** Null when it never ran. */
async function simulatedJob(
  client: DroverClient,
  listed: JobView,
  nowMs: number,
): Promise<{ job: SimulatedJob; waitedMs: number[] } | null> {
  if (listed.startedAtMs === null) return null;
  const { spec } = await client.getJob(listed.id);
  if (!spec) return null;
  const durations: number[] = [];
  const waits: number[] = [];
  for await (const task of eachItem((page) => client.listTasks(listed.id, page), PAGE)) {
    durations.push(ranFor(task, nowMs));
    if (task.startedAtMs !== null) waits.push(Math.max(0, task.startedAtMs - listed.createdAtMs));
  }
  const [first = 1] = durations;
  const job: SimulatedJob = {
    atMs: listed.createdAtMs,
    tenant: listed.tenant,
    user: listed.owner,
    // A job that was waited for then has ended; its own submission says when this one could come.
    spec: { ...spec, after: [], startWithinMs: 0 },
    durationMs: spec.shape.kind === 'array' ? durations : first,
    exitCode: listed.state === 'FAILED' ? (listed.exitCode ?? 1) : 0,
    failures: 0,
    checkpointMs: 0,
    remembered: null,
    after: [],
  };
  // A gang starts as one.
  return { job, waitedMs: spec.shape.kind === 'array' ? waits : waits.slice(0, 1) };
}

/** A task that never started took no time. */
function ranFor({ startedAtMs, endedAtMs }: TaskView, nowMs: number): number {
  return startedAtMs === null ? 1 : Math.max(1, (endedAtMs ?? nowMs) - startedAtMs);
}

async function eachAtOnce<Item>(
  items: AsyncGenerator<Item>,
  run: (item: Item) => Promise<void>,
): Promise<void> {
  const worker = async (): Promise<void> => {
    for (let next = await items.next(); !next.done; next = await items.next()) {
      await run(next.value);
    }
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, worker));
}

/** Workers that are alike become one group. The API tells no prices. */
export async function serverFleet(client: DroverClient): Promise<Fleet> {
  const pools = new Map<string, Map<string, WorkerGroup>>();
  for await (const worker of eachItem((page) => client.listWorkers(page), PAGE)) {
    const groups = pools.get(worker.pool) ?? new Map<string, WorkerGroup>();
    pools.set(worker.pool, groups);
    const { total, devices, network, attributes } = worker;
    const key = JSON.stringify([total, devices, network, attributes]);
    const group = groups.get(key) ?? groupOf(worker);
    group.count++;
    groups.set(key, group);
  }
  if (pools.size === 0) {
    throw new DroverError('NOT_FOUND', `${client.url} has no workers`, {
      hint: 'Describe the fleet in a file: --fleet FLEET.yaml.',
    });
  }
  return {
    pools: [...pools].map(([name, groups]) => ({
      policy: freePool(name),
      groups: [...groups.values()],
      failEveryMs: 0,
      backAfterMs: 0,
    })),
    budgets: [],
  };
}

function groupOf({ total, devices, network, attributes }: WorkerView): WorkerGroup {
  const { cpuMillis, memoryBytes } = total;
  return {
    count: 0,
    resources: { cpuMillis, memoryBytes, devices, portRange: PORT_RANGE },
    network,
    attributes,
  };
}
