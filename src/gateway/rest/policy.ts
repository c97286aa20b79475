/** /v1/policy: the site's rules and defaults. */
import type { Coordinator } from '../../protocol/coordinator.ts';
import { policyView } from '../../protocol/policy.ts';
import type { App } from '../app.ts';
import { found, one } from './envelope.ts';

export function policyRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url: '/v1/policy',
    config: { access: 'fleet:manage' },
    schema: {
      tags: ['policy'],
      operationId: 'policy',
      summary: "The site's rules and defaults for jobs, as its operator wrote them",
      response: { 200: one(policyView) },
    },
    handler: async ({ principal }) => found(await coordinator.policy(principal)),
  });
}
