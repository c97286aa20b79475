/** The admin who closes workers and opens them again, straight at the controller. */
import type { Principal } from '../../src/model/token.ts';
import type { LiveWorker } from '../../src/state/live.ts';
import type { Cluster } from './cluster.ts';
import { ADMIN } from './people.ts';

/** One of them is closed, or all are opened. */
export async function drain(cluster: Cluster, draining: boolean): Promise<void> {
  const workers = workersOf(cluster);
  if (workers.length === 0) return;
  await setDraining(cluster, draining ? [cluster.world.pick(workers)] : workers, draining);
}

/** Opens those that no pool may be giving back. */
export async function openOwn(cluster: Cluster): Promise<void> {
  const own = workersOf(cluster).filter(({ worker }) => worker.instance === null);
  await setDraining(cluster, own, false);
}

function workersOf({ controller: { controller } }: Cluster): LiveWorker[] {
  return [...(controller?.state.workers.values() ?? [])];
}

async function setDraining(
  cluster: Cluster,
  workers: readonly LiveWorker[],
  draining: boolean,
): Promise<void> {
  const ids = workers.map(({ worker }) => worker.id);
  try {
    const { coordinator } = cluster.target();
    const who = await coordinator?.authenticate(ADMIN.secret);
    for (const id of who ? ids : []) await coordinator?.setDraining(who as Principal, id, draining);
  } catch (error) {
    cluster.world.note('admin', `drain failed: ${(error as Error).message}`);
  }
}
