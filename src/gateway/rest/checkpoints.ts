/** /v1/jobs/{id}/checkpoints: what a job's tasks have saved, and asking for one more. */
import type { Coordinator } from '../../protocol/coordinator.ts';
import { checkpointAsked, checkpointView, taskPageQuery } from '../../protocol/jobs.ts';
import type { App } from '../app.ts';
import { found, jobParams, list, one, page } from './envelope.ts';

const url = '/v1/jobs/:id/checkpoints';
const shared = { tags: ['jobs'], params: jobParams };

export function checkpointRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url,
    config: { access: 'jobs:read' },
    schema: {
      ...shared,
      operationId: 'listCheckpoints',
      summary: "What a job's tasks can resume from, by task, oldest first",
      querystring: taskPageQuery,
      response: { 200: list(checkpointView) },
    },
    handler: async ({ principal, params, query }) =>
      page(await coordinator.listCheckpoints(principal, params.id, query)),
  });

  app.route({
    method: 'POST',
    url,
    config: { access: 'jobs:manage', failures: ['CONFLICT'] },
    schema: {
      ...shared,
      operationId: 'requestCheckpoint',
      summary: 'Ask what runs for a checkpoint now; it is in the list when it is stored',
      querystring: taskPageQuery.pick({ task: true }),
      response: { 202: one(checkpointAsked) },
    },
    handler: async ({ principal, params, query }, reply) => {
      const tasks = await coordinator.requestCheckpoint(principal, params.id, query.task);
      return reply.code(202).send(found({ tasks }));
    },
  });
}
