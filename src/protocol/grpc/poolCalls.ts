/** The client's half of pools, instances and hosts. */
import type { PoolCalls } from '../pools.ts';
import type { Connection } from './connection.ts';
import { hostFromWire, instanceFromWire, poolFromWire } from './poolMessages.ts';

export function poolCalls({ coordinator, call, by }: Connection): PoolCalls {
  return {
    listPools: (who) =>
      call(
        by(who),
        (options) => coordinator.listPools({}, options),
        ({ pools }) => pools.map(poolFromWire),
      ),
    lookAtPool: (who, pool) =>
      call(
        by(who),
        (options) => coordinator.lookAtPool({ pool }, options),
        (response) => poolFromWire(response.pool),
      ),
    listInstances: (who, { limit, cursor, pool, ended }) =>
      call(
        by(who),
        (options) => coordinator.listInstances({ page: { limit, cursor }, pool, ended }, options),
        ({ instances, nextCursor }) => ({
          items: instances.map(instanceFromWire),
          nextCursor: nextCursor ?? null,
        }),
      ),
    getInstance: (who, id) =>
      call(
        by(who),
        (options) => coordinator.getInstance({ id }, options),
        ({ instance }) => instanceFromWire(instance),
      ),
    destroyInstance: (who, id) =>
      call(
        by(who),
        (options) => coordinator.destroyInstance({ id }, options),
        ({ instance }) => instanceFromWire(instance),
      ),
    listHosts: (who) =>
      call(
        by(who),
        (options) => coordinator.listHosts({}, options),
        ({ hosts }) => hosts.map(hostFromWire),
      ),
    setHost: (who, { host, word }) =>
      call(
        by(who),
        (options) => coordinator.setHost({ host, word }, options),
        (response) => hostFromWire(response.host),
      ),
  };
}
