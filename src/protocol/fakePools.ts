/** Pools, instances and hosts of the fakes: one pool, and whatever a test puts there. */
import { DroverError } from '../lib/errors.ts';
import { allow } from './fakeAnswers.ts';
import type { HostView, InstanceView, PoolCalls, PoolView } from './pools.ts';

const NO_MONEY = { hour: 0, day: 0, month: 0 };

const DEFAULT_POOL: PoolView = {
  ...{ name: 'default', provider: '', mode: 'agents', min: 0, max: 0, workers: 0 },
  ...{ coming: 0, joined: 0, leaving: 0, error: '', notBeforeMs: null, listedAtMs: null },
  ...{ listError: '', notice: '', deviceHourMicros: 0, cpuHourMicros: 0, instanceHourMicros: 0 },
  ...{ spent: { ...NO_MONEY, total: 0 }, spendLimits: NO_MONEY, others: [] },
};

export interface FakePools extends PoolCalls {
  readonly pools: PoolView[];
  readonly instances: Map<string, InstanceView>;
  readonly hosts: Map<string, HostView>;
}

export function fakePools(): FakePools {
  const pools = [DEFAULT_POOL];
  const instances = new Map<string, InstanceView>();
  const hosts = new Map<string, HostView>();
  const find = <Item>(items: ReadonlyMap<string, Item>, what: string, id: string): Item => {
    const found = items.get(id);
    if (found) return found;
    throw new DroverError('NOT_FOUND', `there is no ${what} ${id}`);
  };
  return {
    ...{ pools, instances, hosts },
    async listPools(who) {
      allow(who, 'fleet:read');
      return pools;
    },
    async lookAtPool(who, name) {
      allow(who, 'fleet:manage');
      return find(new Map(pools.map((pool) => [pool.name, pool])), 'pool', name);
    },
    async listInstances(who, { pool, ended }) {
      allow(who, 'fleet:read');
      const items = [...instances.values()].filter(
        (one) => (pool === '' || one.pool === pool) && (one.endedAtMs !== null) === ended,
      );
      return { items, nextCursor: null };
    },
    async getInstance(who, id) {
      allow(who, 'fleet:read');
      return find(instances, 'instance', id);
    },
    async destroyInstance(who, id) {
      allow(who, 'fleet:manage');
      return Object.assign(find(instances, 'instance', id), { state: 'DESTROYING' as const });
    },
    async listHosts(who) {
      allow(who, 'fleet:read');
      return [...hosts.values()];
    },
    async setHost(who, { host, word }) {
      allow(who, 'fleet:manage');
      const verdict = word === 'clear' ? 'none' : word;
      return Object.assign(find(hosts, 'host', host), { verdict });
    },
  };
}
