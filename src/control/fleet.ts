/** The fleet half of the Coordinator: the cluster and its workers. */
import { DroverError } from '../lib/errors.ts';
import type { WorkerId } from '../model/ids.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { Principal } from '../model/token.ts';
import type { ClusterView, WorkerView } from '../protocol/fleet.ts';
import type { LiveWorker } from '../state/live.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';
import { cutPage, decodeText } from './cursors.ts';
import type { Mutate } from './mutate.ts';
import type { Sessions } from './sessions.ts';
import { workerView } from './views.ts';

export interface FleetOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  sessions: Sessions;
  cluster: Pick<ClusterView, 'name' | 'version' | 'startedAtMs' | 'store' | 'attemptLeaseMs'>;
}

export type Fleet = Pick<Coordinator, 'cluster' | 'listWorkers' | 'setDraining' | 'revokeWorker'>;

export function createFleet(options: FleetOptions): Fleet {
  const { state, mutate, committer, sessions } = options;
  const viewOf = (live: LiveWorker, who: Principal): WorkerView => ({
    ...workerView(live, sessions.lastContactAtMs(live.worker.id)),
    attempts: attemptsOn(live, who),
  });
  return {
    async cluster(who) {
      const view = { ...options.cluster, ...summary(state, who) };
      await committer.durable();
      return view;
    },

    async listWorkers(who, page) {
      const after = decodeText(page.cursor) ?? '';
      const found = [...state.workers.values()]
        .filter(({ worker }) => worker.id > after)
        .toSorted((a, b) => (a.worker.id < b.worker.id ? -1 : 1))
        .slice(0, page.limit + 1);
      const items = found.map((live) => viewOf(live, who));
      await committer.durable();
      return cutPage(items, page.limit, (last) => [last.id]);
    },

    async setDraining(who, id, draining) {
      const worker = id as WorkerId;
      const result = mutate({ kind: 'drain', worker, draining, ...byOf(who) });
      const live = state.workers.get(worker);
      if (result.kind === 'missing' || !live) throw noWorker(id);
      const view = viewOf(live, who);
      await committer.durable();
      return view;
    },

    async revokeWorker(who, id) {
      const worker = id as WorkerId;
      const result = mutate({ kind: 'revoke-worker', worker, ...byOf(who) });
      const live = state.workers.get(worker);
      if (result.kind === 'missing' || !live) throw noWorker(id);
      const view = viewOf(live, who);
      await committer.durable();
      return view;
    },
  };
}

/** Workers are nobody's: what is done to them stands in the record of whoever did it. */
function byOf({ user, tenant }: Principal): { by: string; tenant: string } {
  return { by: user, tenant };
}

function noWorker(id: string): DroverError {
  return new DroverError('NOT_FOUND', `there is no worker ${id.slice(0, 100)}`, {
    hint: 'list them with: drover workers',
  });
}

/** Those of a worker that the caller may count. */
function attemptsOn({ attempts }: LiveWorker, who: Principal): number {
  if (seesAll(who)) return attempts.size;
  let own = 0;
  for (const { tenant } of attempts.values()) if (tenant === who.tenant) own++;
  return own;
}

/** Operators count everybody's work, others their tenant's. */
function seesAll({ scopes }: Principal): boolean {
  return scopes.includes('fleet:manage');
}

function summary(
  state: State,
  who: Principal,
): Pick<ClusterView, 'id' | 'epoch' | 'workers' | 'tasks'> {
  const workers = { online: 0, suspect: 0, draining: 0 };
  for (const { worker } of state.workers.values()) {
    if (worker.draining) workers.draining++;
    if (worker.state === 'ONLINE') workers.online++;
    if (worker.state === 'SUSPECT') workers.suspect++;
  }
  const tasks = { pending: 0, assigned: 0, running: 0 };
  const all = seesAll(who);
  for (const { job, counts } of state.jobs.values()) {
    if (!all && job.tenant !== who.tenant) continue;
    tasks.pending += counts.PENDING;
    tasks.assigned += counts.ASSIGNED;
    tasks.running += counts.RUNNING;
  }
  return { id: state.clusterId, epoch: state.epoch, workers, tasks };
}
