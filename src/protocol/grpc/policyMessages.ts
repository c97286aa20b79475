/** The site's policy over gRPC: both halves of the one call. */
import type { ServiceImpl } from '@connectrpc/connect';
import type { Coordinator } from '../coordinator.ts';
import type { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { principalOf } from './caller.ts';
import type { Connection } from './connection.ts';
import { toBigintOrNone, toNumberOrNull } from './wire.ts';

export function policyCalls({ coordinator, call, by }: Connection): Pick<Coordinator, 'policy'> {
  return {
    policy: (who) =>
      call(
        by(who),
        (options) => coordinator.getPolicy({}, options),
        ({ text, loadedAtMs, problem = null }) => ({
          text,
          loadedAtMs: toNumberOrNull(loadedAtMs),
          problem,
        }),
      ),
  };
}

export function policyMethods(
  coordinator: Coordinator,
): Pick<ServiceImpl<typeof CoordinatorService>, 'getPolicy'> {
  return {
    async getPolicy(_request, context) {
      const { text, loadedAtMs, problem } = await coordinator.policy(principalOf(context));
      return {
        text,
        loadedAtMs: toBigintOrNone(loadedAtMs),
        problem: problem ?? undefined,
      };
    },
  };
}
