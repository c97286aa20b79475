/** What providers were asked for and what is known of the machines they gave. */
import type { Host } from '../model/host.ts';
import type { InstanceId, WorkerId } from '../model/ids.ts';
import type { Instance } from '../model/instance.ts';
import type { PoolSpending } from '../model/poolSpending.ts';
import type { LiveInstance, LiveWorker, Snapshot } from './live.ts';

export class Machines {
  /** That have not ended. */
  readonly instances = new Map<InstanceId, LiveInstance>();
  readonly hosts = new Map<Host['id'], Host>();
  /** By pool. */
  readonly spending = new Map<string, PoolSpending>();

  constructor({ instances, hosts, spending }: Pick<Snapshot, 'instances' | 'hosts' | 'spending'>) {
    for (const instance of instances) this.adopt(instance);
    for (const host of hosts) this.hosts.set(host.id, host);
    for (const each of spending) this.spending.set(each.pool, each);
  }

  adopt(instance: Instance): LiveInstance {
    const live: LiveInstance = { instance, workers: new Set() };
    this.instances.set(instance.id, live);
    return live;
  }

  /** Of workers that were read back. */
  link({ worker }: LiveWorker): void {
    if (worker.instance) this.instances.get(worker.instance)?.workers.add(worker.id);
  }

  unlink(instance: InstanceId | null, worker: WorkerId): void {
    if (instance) this.instances.get(instance)?.workers.delete(worker);
  }
}
