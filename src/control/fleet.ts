/** The fleet half of the Coordinator: the cluster and its workers. */
import { DroverError } from '../lib/errors.ts';
import type { WorkerId } from '../model/ids.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { ClusterView } from '../protocol/fleet.ts';
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
  return {
    async cluster() {
      await committer.durable();
      return { ...options.cluster, ...summary(state) };
    },

    async listWorkers(_who, page) {
      const after = decodeText(page.cursor) ?? '';
      const found = [...state.workers.values()]
        .filter(({ worker }) => worker.id > after)
        .toSorted((a, b) => (a.worker.id < b.worker.id ? -1 : 1))
        .slice(0, page.limit + 1);
      const items = found.map((live) => workerView(live, sessions.lastContactAtMs(live.worker.id)));
      await committer.durable();
      return cutPage(items, page.limit, (last) => [last.id]);
    },

    async setDraining(who, id, draining) {
      const worker = id as WorkerId;
      const result = mutate({ kind: 'drain', worker, draining, by: who.user });
      const live = state.workers.get(worker);
      if (result.kind === 'missing' || !live) throw noWorker(id);
      const view = workerView(live, sessions.lastContactAtMs(worker));
      await committer.durable();
      return view;
    },

    async revokeWorker(who, id) {
      const worker = id as WorkerId;
      const result = mutate({ kind: 'revoke-worker', worker, by: who.user });
      const live = state.workers.get(worker);
      if (result.kind === 'missing' || !live) throw noWorker(id);
      const view = workerView(live, sessions.lastContactAtMs(worker));
      await committer.durable();
      return view;
    },
  };
}

function noWorker(id: string): DroverError {
  return new DroverError('NOT_FOUND', `there is no worker ${id.slice(0, 100)}`, {
    hint: 'list them with: drover workers',
  });
}

function summary(state: State): Pick<ClusterView, 'id' | 'epoch' | 'workers' | 'tasks'> {
  const workers = { online: 0, suspect: 0, draining: 0 };
  for (const { worker } of state.workers.values()) {
    if (worker.draining) workers.draining++;
    if (worker.state === 'ONLINE') workers.online++;
    if (worker.state === 'SUSPECT') workers.suspect++;
  }
  const tasks = { pending: 0, assigned: 0, running: 0 };
  for (const { counts } of state.jobs.values()) {
    tasks.pending += counts.PENDING;
    tasks.assigned += counts.ASSIGNED;
    tasks.running += counts.RUNNING;
  }
  return { id: state.clusterId, epoch: state.epoch, workers, tasks };
}
