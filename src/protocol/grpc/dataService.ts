/** The server's half of data sets. */
import type { ServiceImpl } from '@connectrpc/connect';
import type { Coordinator } from '../coordinator.ts';
import { dataInput } from '../dataSets.ts';
import type { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { principalOf } from './caller.ts';
import { parse } from './check.ts';
import { dataFromWire, dataViewToWire } from './dataMessages.ts';

type DataMethod = 'listData' | 'putData' | 'removeData' | 'namedBlobs';

export function dataMethods(
  coordinator: Coordinator,
): Pick<ServiceImpl<typeof CoordinatorService>, DataMethod> {
  return {
    async listData(_request, context) {
      const views = await coordinator.listData(principalOf(context));
      return { dataSets: views.map(dataViewToWire) };
    },
    async putData({ content }, context) {
      const wanted = parse(dataInput, dataFromWire(content));
      const view = await coordinator.putData(principalOf(context), wanted);
      return { dataSet: dataViewToWire(view) };
    },
    async removeData({ name }, context) {
      await coordinator.removeData(principalOf(context), name);
      return {};
    },
    async namedBlobs({ cursor }, context) {
      const page = await coordinator.namedBlobs(principalOf(context), cursor ?? null);
      return { names: page.items, nextCursor: page.nextCursor ?? undefined };
    },
  };
}
