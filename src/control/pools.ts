/** The half of the Coordinator that tells of pools, instances and hosts. */
import type { PoolPolicy } from '../core/placement/admission.ts';
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { InstanceId } from '../model/ids.ts';
import type { Instance } from '../model/instance.ts';
import type { Principal } from '../model/token.ts';
import type { InstanceView, PoolCalls, PoolView } from '../protocol/pools.ts';
import type { State } from '../state/state.ts';
import type { History } from '../store/contract.ts';
import { decodeInstance } from '../store/machineRows.ts';
import type { Committer } from './committer.ts';
import { cutPage, decodeText } from './cursors.ts';
import type { Mutate } from './mutate.ts';
import type { PoolLoops } from './pools/loops.ts';
import { hostViewOf, instanceViewOf, poolViewOf } from './pools/views.ts';

export interface PoolCallOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  history: History;
  clock: Clock;
  pools: readonly PoolPolicy[];
  loops: PoolLoops;
}

export function createPools(options: PoolCallOptions): PoolCalls {
  const { state, mutate, committer, history, clock, pools, loops } = options;
  const viewOf = (policy: PoolPolicy): PoolView =>
    poolViewOf(state, policy, loops.find(policy.name), clock.now());
  const instanceOf = (instance: Instance, who: Principal): InstanceView =>
    instanceViewOf(state, instance, loops.find(instance.pool)?.pool.kind ?? '', who);

  async function find(id: string): Promise<Instance> {
    const live = state.machines.instances.get(id as InstanceId)?.instance;
    if (live) return live;
    const [row] = await history.system().instances('', `${id}\u0001`, 1);
    if (row?.id === id) return decodeInstance(row);
    throw new DroverError('NOT_FOUND', `there is no instance ${id.slice(0, 100)}`, {
      hint: 'list them with: drover instances, or --ended',
    });
  }

  return {
    async listPools() {
      const views = pools.map(viewOf);
      await committer.durable();
      return views;
    },

    async lookAtPool(_who, name) {
      const policy = pools.find((pool) => pool.name === name);
      if (!policy) throw noPool(name, pools);
      await loops.look(name);
      const view = viewOf(policy);
      await committer.durable();
      return view;
    },

    async listInstances(who, { pool, ended, limit, cursor }) {
      const after = decodeText(cursor) ?? '';
      const found = ended
        ? await endedInstances(history, pool, after, limit + 1)
        : [...state.machines.instances.values()]
            .map(({ instance }) => instance)
            .filter(({ id, pool: of }) => (pool === '' || of === pool) && id > after)
            .toSorted((a, b) => (a.id < b.id ? -1 : 1))
            .slice(0, limit + 1);
      const items = found.map((instance) => instanceOf(instance, who));
      await committer.durable();
      return cutPage(items, limit, (last) => [last.id]);
    },

    async getInstance(who, id) {
      const instance = await find(id);
      const view = { ...instanceOf(instance, who), script: instance.script };
      await committer.durable();
      return view;
    },

    async destroyInstance(who, id) {
      const instance = id as InstanceId;
      const by = { by: who.user, tenant: who.tenant };
      const reason = `ended by ${who.user}`;
      mutate({ kind: 'destroy-instance', instance, failure: null, reason, ...by });
      const view = instanceOf(await find(id), who);
      await committer.durable();
      loops.hint(view.pool);
      return view;
    },

    async listHosts() {
      const views = [...state.machines.hosts.values()]
        .toSorted((a, b) => (a.id < b.id ? -1 : 1))
        .map((host) => hostViewOf(state, host, clock.now()));
      await committer.durable();
      return views;
    },

    async setHost(who, { host: id, word }) {
      const by = { by: who.user, tenant: who.tenant };
      const result = mutate({ kind: 'set-host', host: id, word, ...by });
      const host = state.machines.hosts.get(id);
      if (result.kind === 'missing' || !host) throw noHost(id);
      const view = hostViewOf(state, host, clock.now());
      await committer.durable();
      return view;
    },
  };
}

/** Pages of what has ended skip what has not, so a page may need several reads. */
async function endedInstances(
  history: History,
  pool: string,
  before: string,
  limit: number,
): Promise<Instance[]> {
  const found: Instance[] = [];
  for (let at = before; found.length < limit;) {
    const rows = await history.system().instances(pool, at, limit);
    for (const row of rows) if (row.ended_at_ms !== null) found.push(decodeInstance(row));
    const last = rows.at(-1);
    if (!last || rows.length < limit) break;
    at = last.id;
  }
  return found.slice(0, limit);
}

function noPool(name: string, pools: readonly PoolPolicy[]): DroverError {
  const known = pools.map((pool) => pool.name).join(', ');
  return new DroverError('NOT_FOUND', `there is no pool "${name.slice(0, 100)}"`, {
    hint: `the pools are: ${known}`,
  });
}

function noHost(id: string): DroverError {
  return new DroverError('NOT_FOUND', `nothing is known of a host ${id.slice(0, 100)}`, {
    hint: 'list them with: drover hosts',
  });
}
