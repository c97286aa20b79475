/** The audit calls of drover.v1.Coordinator. */
import type { ServiceImpl } from '@connectrpc/connect';
import type { AccessRecord } from '../coordinator.ts';
import type { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { callerKey, principalOf, requireGateway } from './caller.ts';
import type { ServiceOptions } from './coordinatorService.ts';
import { eventToWire } from './jobMessages.ts';
import { pageOf } from './paging.ts';

export function auditMethods({
  coordinator,
}: ServiceOptions): Pick<ServiceImpl<typeof CoordinatorService>, 'listAudit' | 'recordAccess'> {
  return {
    async listAudit({ page }, context) {
      const found = await coordinator.listAudit(principalOf(context), pageOf(page));
      return { events: found.items.map(eventToWire), nextCursor: found.nextCursor ?? undefined };
    },
    async recordAccess({ how, attempt, details = {} }, context) {
      // Otherwise anybody could fill the record with what he never did.
      requireGateway(context.values.get(callerKey));
      const plain = details as AccessRecord['details'];
      await coordinator.recordAccess(principalOf(context), { how, attempt, details: plain });
      return {};
    },
  };
}
