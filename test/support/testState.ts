/** A live state for tests, with short ways to put it into any situation. */
import { OPEN_TERMS } from '../../src/model/placement.ts';
import { claimOf } from '../../src/core/placement/capacity.ts';
import type { Ending } from '../../src/core/retry.ts';
import type { EndCause } from '../../src/model/attempt.ts';
import { attemptUid, type AttemptUid, type ClusterId } from '../../src/model/ids.ts';
import type { JobId, WorkerId } from '../../src/model/ids.ts';
import type { Task } from '../../src/model/task.ts';
import { jobSpec, type SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import { apply } from '../../src/state/apply.ts';
import { emptySnapshot, type LiveJob } from '../../src/state/live.ts';
import type {
  Assign,
  Join,
  Mutation,
  Observed,
  Result,
  Submit,
} from '../../src/state/mutations.ts';
import { requestOf } from '../../src/state/requests.ts';
import { State } from '../../src/state/state.ts';

const EPOCH = 1_800_000_000_000;

export class TestState {
  readonly state: State;
  nowMs = 1000;
  #uids = 0;

  constructor(state: State = new State(emptySnapshot('c0test' as ClusterId, EPOCH))) {
    this.state = state;
  }

  apply(mutation: Mutation): Result {
    return apply(this.state, mutation, this.nowMs);
  }

  submit(fields: Partial<SubmittedSpec> = {}, more: Partial<Submit> = {}): LiveJob {
    const result = this.apply(submission([fields], more));
    if (result.kind !== 'submitted') throw new Error(result.kind);
    return this.job(result.ids[0] as JobId);
  }

  job(id: JobId): LiveJob {
    const live = this.state.jobs.get(id);
    if (!live) throw new Error(`no job ${id}`);
    return live;
  }

  join(machine: string, more: Partial<Join['worker']> = {}, maxLiveWorkers = 0): WorkerId {
    const result = this.apply(joining(machine, more, maxLiveWorkers));
    if (result.kind !== 'joined') throw new Error(result.kind);
    return result.worker;
  }

  /** What a planner would say: these tasks, all on this worker. */
  placement(live: LiveJob, worker: WorkerId, tasks: Task[] = live.tasks): Assign {
    const capacity = this.state.workers.get(worker)?.capacity;
    const { resources } = requestOf(live.job);
    const held = tasks.map((task) => {
      const fit = capacity?.fit(resources);
      if (!fit?.fits) throw new Error(`no room: ${fit?.short}`);
      const uid = attemptUid(task.id, task.attempts + 1, `f${this.#uids++}`);
      const claim = claimOf(uid, worker, resources, fit);
      capacity?.take(claim);
      return { task: task.id, version: task.version, claim };
    });
    for (const { claim } of held) capacity?.give(claim);
    return { kind: 'assign', job: live.job.id, round: live.job.round, tasks: held };
  }

  /** Assigns them and returns the uids in order of the tasks. */
  assign(live: LiveJob, worker: WorkerId, tasks?: Task[]): AttemptUid[] {
    const placement = this.placement(live, worker, tasks);
    const result = this.apply(placement);
    if (result.kind !== 'done') throw new Error(JSON.stringify(result));
    return placement.tasks.map(({ claim }) => claim.owner);
  }

  observe(worker: WorkerId, observed: Observed[], complete = false): Result {
    return this.apply({ kind: 'observe', worker, observed, complete });
  }

  /** The agent that runs these says that they run. */
  run(...uids: AttemptUid[]): void {
    for (const uid of uids) this.observe(this.#workerOf(uid), [seen(uid, 'RUNNING')]);
  }

  end(uid: AttemptUid, cause: EndCause, more: Partial<Ending> = {}): void {
    this.observe(this.#workerOf(uid), [ended(uid, cause, more)]);
  }

  exit(uid: AttemptUid, exitCode: number): void {
    this.end(uid, 'exited', { exitCode });
  }

  #workerOf(uid: AttemptUid): WorkerId {
    const attempt = this.state.attempts.get(uid);
    if (!attempt) throw new Error(`no attempt ${uid}`);
    return attempt.worker;
  }
}

export function submission(
  fields: Partial<SubmittedSpec>[] = [{}],
  more: Partial<Submit> = {},
): Submit {
  return {
    kind: 'submit',
    tenant: 'default',
    owner: 'ann',
    submittingPrincipal: 'ann',
    links: [],
    specs: fields.map((one) => jobSpec.parse({ command: ['true'], ...one })),
    idempotencyKey: null,
    bodyHash: null,
    ...more,
  };
}

export function joining(
  machine: string,
  more: Partial<Join['worker']> = {},
  maxLiveWorkers = 0,
): Join {
  return {
    kind: 'join',
    worker: {
      name: `host-${machine}`,
      pool: 'default',
      machine,
      bootId: 'boot1',
      address: '10.0.0.1',
      network: 'lan',
      resources: {
        cpuMillis: 8000,
        memoryBytes: 2 ** 34,
        devices: [0, 1].map((index) => ({ index, kind: 'gpu', model: 'H100', memoryBytes: 1e9 })),
        portRange: [2000, 2009],
      },
      attributes: {},
      terms: OPEN_TERMS,
      agentVersion: '0.1.0',
      host: `host-${machine}`,
      tokenHash: `hash-${machine}`,
      joinToken: 't1',
      ...more,
    },
    maxLiveWorkers,
  };
}

export function seen(uid: AttemptUid, state: Observed['state']): Observed {
  return { uid, state, ending: null };
}

export function ended(uid: AttemptUid, cause: EndCause, more: Partial<Ending> = {}): Observed {
  const ending = { cause, exitCode: null, signal: null, message: '', hostFault: false, ...more };
  return { uid, state: 'ENDED', ending: { ...ending, stdoutBytes: 0, stderrBytes: 0 } };
}

/**
 * The whole state as plain data: what was not meant to change must not change it. `changes` too,
 * unless it is to be compared with a rebuilt one.
 */
export function picture(state: State) {
  return structuredClone({
    ...liveParts(state),
    seq: state.seq,
    wake: [...state.wake],
    changes: {
      rows: [
        ...state.changes.jobs,
        ...state.changes.tasks,
        ...state.changes.attempts,
        ...state.changes.workers,
        ...state.changes.tokens,
        ...state.changes.claims,
      ],
      events: state.changes.events,
    },
  });
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}

/** What a rebuild must bring back. */
export function liveParts(state: State) {
  const byKey = <Value>(map: ReadonlyMap<string, Value>) =>
    [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    jobs: byKey(state.jobs).map(([, { attempts, ...live }]) => ({
      ...live,
      attempts: [...attempts.values()].map(({ uid }) => uid).toSorted(),
    })),
    attempts: byKey(state.attempts),
    claims: byKey(state.claims),
    workers: byKey(state.workers).map(([, live]) => workerPart(live)),
    byToken: byKey(state.workersByToken).map(([hash, { worker }]) => [hash, worker.id]),
    byMachine: byKey(state.workersByMachine).map(([machine, { worker }]) => [machine, worker.id]),
    tokens: byKey(state.tokens),
    tokensByHash: byKey(state.tokensByHash).map(([hash, { id }]) => [hash, id]),
    tenants: byKey(state.tenants.tenants),
    users: ['default', 'a'].flatMap((name) => [...state.tenants.usersOf(name)]).toSorted(byName),
    auditHeads: ['default', 'a'].map((name) => state.auditChains.head(name)),
    pools: [...state.pools].toSorted(),
    idempotency: byKey(state.idempotency),
    nominations: byKey(state.nominations).map(([id, { claim }]) => [id, claim.owner]),
    dependents: byKey(state.dependents).map(([id, who]) => [id, [...who].map(({ job }) => job.id)]),
    accounts: accountParts(state),
    usageDays: [...state.usageDays.all()],
    downstream: byKey(state.downstream),
    dataSets: [...state.dataSets.all()].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    costLimited: [...state.costLimited].map(({ job }) => job.id).toSorted(),
    timed: [...state.timed].map(({ job }) => job.id).toSorted(),
  };
}

/** An account of which nothing is known yet may be there or not. */
function accountParts(state: State) {
  return [...state.accounts.all()]
    .filter(({ account, budget, held }) => account.version > 0 || budget || held.deviceMs > 0)
    .map((live) => ({ key: `${live.account.tenant}/${live.account.user}`, live }))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

function workerPart({ worker, capacity, attempts }: { worker: object } & LiveWorkerParts) {
  return {
    worker,
    cpuFree: capacity.cpuFree,
    memoryFree: capacity.memoryFree,
    deviceFree: capacity.deviceFree,
    ports: [...capacity.portsTaken].toSorted((a, b) => a - b),
    attempts: [...attempts.keys()].toSorted(),
  };
}

type LiveWorkerParts = Pick<
  NonNullable<ReturnType<State['workers']['get']>>,
  'capacity' | 'attempts'
>;
