/** Training jobs: submitted as five blocks, listed, looked at, cancelled, given a priority. */
import { z } from 'zod';
import { JOB_STATES, type JobSpec } from '../../model/job.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import { taskPageQuery } from '../../protocol/jobs.ts';
import { clean } from '../../protocol/texts.ts';
import type { Accompaniment, App } from '../app.ts';
import { jobParams } from '../rest/envelope.ts';
import { priorityBody, SUBMIT_FAILURES } from '../rest/jobs.ts';
import { idempotencyHeader, REPLAYED } from '../rest/idempotency.ts';
import { annotationsOf, EVALUATION_NAME, submission, type Blocks } from './blocks.ts';
import { answers, listOf, pageAnswer, pageFields, pageOf, pageQuery, success } from './envelope.ts';
import { TRAINING_PREFIX } from './failure.ts';
import type { MakeJob } from './makeJob.ts';
import {
  checkpointOf,
  summaryOf,
  trainingCheckpoint,
  trainingJob,
  trainingJobOf,
  trainingSummary,
} from './views.ts';

const tags = ['training'];
export const statusFilter = z.enum(JOB_STATES).optional().describe('Only those in this state');
const url = `${TRAINING_PREFIX}/jobs`;
const one = { tags, params: jobParams };
const read = { access: 'jobs:read' } as const;
const write = { access: 'jobs:manage' } as const;

export function trainingJobRoutes(app: App, coordinator: Coordinator, makeJob: MakeJob): void {
  submitRoute(app, coordinator, makeJob);
  readRoutes(app, coordinator);
  changeRoutes(app, coordinator);
}

function submitRoute(app: App, coordinator: Coordinator, makeJob: MakeJob): void {
  app.route({
    method: 'POST',
    url,
    config: { ...write, failures: [...SUBMIT_FAILURES, 'NO_SPACE'] },
    schema: {
      tags,
      operationId: 'submitTraining',
      summary: 'Submit a training: a template of the site makes a job of its blocks',
      headers: idempotencyHeader,
      body: submission,
      response: answers(trainingJob),
    },
    handler: async (request, reply) => {
      const { principal, body } = request;
      const spec = await trainingSpec(makeJob, principal, body);
      const { id, replayed } = await submitOne(coordinator, request, spec);
      if (replayed) reply.header(REPLAYED, 'true');
      return success(trainingJobOf(await coordinator.getJob(principal, id)));
    },
  });
}

/** What both kinds of submission of this surface pass on of a request. */
interface Submission {
  principal: Principal;
  headers: { 'idempotency-key'?: string | undefined };
  bodyHash: string | null;
  accompany: () => Promise<Accompaniment> | undefined;
}

export async function submitOne(
  coordinator: Coordinator,
  submitted: Submission,
  spec: JobSpec,
): Promise<{ id: string; replayed: boolean }> {
  const { principal, headers, bodyHash } = submitted;
  const idempotencyKey = headers['idempotency-key'] ?? null;
  const more = await submitted.accompany();
  const request = { specs: [spec], idempotencyKey, bodyHash, ...more };
  const { ids, replayed } = await coordinator.submit(principal, request);
  return { id: ids[0] ?? '', replayed };
}

function trainingSpec(
  makeJob: MakeJob,
  { tenant }: Principal,
  { name, priority, ...blocks }: z.infer<typeof submission>,
): Promise<JobSpec> {
  const own = {
    ...(name !== undefined && { name }),
    ...(priority !== undefined && { priority }),
    annotations: annotationsOf(blocks),
  };
  const values = { ...blocks, name: name ?? '' };
  return makeJob({ tenant, ...templateOf(blocks), values, own });
}

/** Which template, and the field that says so. */
export function templateOf({ model, training }: Blocks): { template: string; field: string } {
  const [name, field] =
    training['template'] === undefined
      ? [model['type'], 'model.type']
      : [training['template'], 'training.template'];
  return { template: typeof name === 'string' ? name : '', field };
}

function readRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url,
    config: read,
    schema: {
      tags,
      operationId: 'listTrainings',
      summary: 'List jobs without their blocks, newest first; evaluations have a list of their own',
      querystring: z.strictObject({
        ...pageFields,
        status: statusFilter,
        user_id: clean(200)
          .optional()
          .describe('Only jobs of this user')
          .meta({ examples: ['ada'] }),
      }),
      response: answers(listOf('jobs', trainingSummary)),
    },
    handler: async ({ principal, query }) => {
      const { status, user_id } = query;
      const page = await coordinator.listJobs(principal, {
        ...pageOf(query),
        ...(status !== undefined && { state: status }),
        ...(user_id !== undefined && { owner: user_id }),
      });
      const jobs = page.items.filter(({ name }) => name !== EVALUATION_NAME);
      return pageAnswer('jobs', jobs.map(summaryOf), page);
    },
  });

  app.route({
    method: 'GET',
    url: `${url}/:id`,
    config: read,
    schema: {
      ...one,
      operationId: 'getTraining',
      summary: 'One job with its blocks',
      response: answers(trainingJob),
    },
    handler: async ({ principal, params }) =>
      success(trainingJobOf(await coordinator.getJob(principal, params.id))),
  });

  app.route({
    method: 'GET',
    url: `${url}/:id/checkpoints`,
    config: read,
    schema: {
      ...one,
      operationId: 'listTrainingCheckpoints',
      summary: "A job's checkpoints, by task, oldest first",
      querystring: pageQuery.extend(taskPageQuery.pick({ task: true }).shape),
      response: answers(listOf('checkpoints', trainingCheckpoint)),
    },
    handler: async ({ principal, params, query }) => {
      const { task } = query;
      const asked = { ...pageOf(query), ...(task !== undefined && { task }) };
      const page = await coordinator.listCheckpoints(principal, params.id, asked);
      return pageAnswer('checkpoints', page.items.map(checkpointOf), page);
    },
  });
}

function changeRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'POST',
    url: `${url}/:id/cancel`,
    config: write,
    schema: {
      ...one,
      operationId: 'cancelTraining',
      summary: 'Cancel a job; one that has ended stays as it is',
      response: answers(trainingJob),
    },
    handler: async ({ principal, params }) =>
      success(trainingJobOf(await coordinator.cancelJob(principal, params.id))),
  });

  for (const method of ['POST', 'PATCH'] as const) {
    app.route({
      method,
      url: `${url}/:id/priority`,
      config: { ...write, failures: ['CONFLICT'] },
      schema: {
        ...one,
        operationId: method === 'POST' ? 'setTrainingPriority' : 'patchTrainingPriority',
        summary: 'Let a job that waits go before others, or after them',
        body: priorityBody,
        response: answers(trainingJob),
      },
      handler: async ({ principal, params, body }) =>
        success(trainingJobOf(await coordinator.setPriority(principal, params.id, body.priority))),
    });
  }
}
