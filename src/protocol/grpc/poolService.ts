/** The half of drover.v1.Coordinator that tells of pools, instances and hosts. */
import type { ServiceImpl } from '@connectrpc/connect';
import type { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import type { Coordinator } from '../coordinator.ts';
import { hostWord, instanceQuery, type PoolCalls } from '../pools.ts';
import { principalOf } from './caller.ts';
import { parse } from './check.ts';
import { pageFields } from './paging.ts';
import { hostToWire, instanceToWire, poolToWire } from './poolMessages.ts';

export function poolMethods(
  coordinator: Coordinator,
): Pick<ServiceImpl<typeof CoordinatorService>, keyof PoolCalls> {
  return {
    async listPools(_request, context) {
      const views = await coordinator.listPools(principalOf(context));
      return { pools: views.map(poolToWire) };
    },
    async lookAtPool({ pool }, context) {
      return { pool: poolToWire(await coordinator.lookAtPool(principalOf(context), pool)) };
    },
    async listInstances({ page, pool, ended }, context) {
      const query = parse(instanceQuery, { ...pageFields(page), pool, ended });
      const found = await coordinator.listInstances(principalOf(context), query);
      const instances = found.items.map(instanceToWire);
      return { instances, nextCursor: found.nextCursor ?? undefined };
    },
    async getInstance({ id }, context) {
      return { instance: instanceToWire(await coordinator.getInstance(principalOf(context), id)) };
    },
    async destroyInstance({ id }, context) {
      const view = await coordinator.destroyInstance(principalOf(context), id);
      return { instance: instanceToWire(view) };
    },
    async listHosts(_request, context) {
      const views = await coordinator.listHosts(principalOf(context));
      return { hosts: views.map(hostToWire) };
    },
    async setHost({ host, word }, context) {
      const said = parse(hostWord, { host, word });
      return { host: hostToWire(await coordinator.setHost(principalOf(context), said)) };
    },
  };
}
