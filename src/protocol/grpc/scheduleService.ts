/** The server's half of explanations. */
import type { ServiceImpl } from '@connectrpc/connect';
import type { Coordinator } from '../coordinator.ts';
import type { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { principalOf } from './caller.ts';
import * as schedule from './scheduleMessages.ts';

export function scheduleMethods(
  coordinator: Coordinator,
): Pick<ServiceImpl<typeof CoordinatorService>, 'explainJob'> {
  return {
    async explainJob({ job }, context) {
      return { why: schedule.whyToWire(await coordinator.why(principalOf(context), job)) };
    },
  };
}
