/** /v1/jobs: submit, list, look at, wait for and cancel jobs. */
import { z } from 'zod';
import type { JobSpec } from '../../model/job.ts';
import { JOB_STATES, PRIORITIES } from '../../model/job.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator, SubmitReply } from '../../protocol/coordinator.ts';
import {
  attemptView,
  eventView,
  jobView,
  listJobsQuery,
  pageQuery,
  taskPageQuery,
  taskView,
} from '../../protocol/jobs.ts';
import { jobSpec, submitBatch } from '../../protocol/jobSpec.ts';
import { saysOf, wholeNumber } from '../../protocol/queries.ts';
import { quickBatch, quickSpec } from '../../protocol/quickSpecs.ts';
import { receiptView } from '../../protocol/receipt.ts';
import { whyView } from '../../protocol/why.ts';
import type { Accompaniment, App } from '../app.ts';
import { tellAge } from '../cache/cachedCoordinator.ts';
import type { GatewayLimits } from '../limits.ts';
import { bodyValidator } from '../validation.ts';
import { found, jobParams, list, listCached, one, oneCached, page } from './envelope.ts';
import { idempotencyHeader, REPLAYED } from './idempotency.ts';

const submitted = one(z.object({ id: z.string(), state: z.enum(JOB_STATES) }));
const submittedBatch = one(z.object({ ids: z.array(z.string()) }));
const tags = ['jobs'];
const access = 'jobs:read';
const DEFAULT_WAIT_MS = 30_000;
/** Beside what is wrong with the request itself: NOT_FOUND is a job or data set that it names. */
export const SUBMIT_FAILURES = [
  'NOT_FOUND',
  'CONFLICT',
  'IDEMPOTENCY_MISMATCH',
  'NEVER_FITS',
  'OVER_QUOTA',
] as const;

interface Submission {
  headers: { 'idempotency-key'?: string | undefined };
  principal: Principal;
  bodyHash: string | null;
  accompany: () => Promise<Accompaniment> | undefined;
}

export function jobRoutes(app: App, coordinator: Coordinator, limits: GatewayLimits): void {
  submitRoutes(app, coordinator, limits);
  readRoutes(app, coordinator, limits);
  detailRoutes(app, coordinator);
  cancelRoutes(app, coordinator);
  priorityRoute(app, coordinator);
}

function submitRoutes(app: App, coordinator: Coordinator, limits: GatewayLimits): void {
  const submit = async (request: Submission, specs: JobSpec[]): Promise<SubmitReply> => {
    const { principal, bodyHash } = request;
    const idempotencyKey = request.headers['idempotency-key'] ?? null;
    const more = await request.accompany();
    return coordinator.submit(principal, { specs, idempotencyKey, bodyHash, ...more });
  };

  app.route({
    method: 'POST',
    url: '/v1/jobs',
    config: { access: 'jobs:manage', failures: SUBMIT_FAILURES },
    validatorCompiler: bodyValidator(quickSpec),
    schema: {
      tags,
      operationId: 'submitJob',
      summary: 'Submit a job',
      headers: idempotencyHeader,
      body: jobSpec,
      response: { 201: submitted.describe('Accepted'), 200: submitted.describe('Known key') },
    },
    handler: async (request, reply) => {
      const { ids, replayed } = await submit(request, [request.body]);
      const id = ids[0] ?? '';
      // A new job is PENDING; only for a repeated one must the state be asked for.
      if (replayed) {
        const { state } = await coordinator.getJob(request.principal, id);
        return reply.header(REPLAYED, 'true').send(found({ id, state }));
      }
      return reply.code(201).send(found({ id, state: 'PENDING' }));
    },
  });

  app.route({
    method: 'POST',
    url: '/v1/jobs/batch',
    bodyLimit: limits.batchBodyBytes,
    config: { access: 'jobs:manage', failures: SUBMIT_FAILURES },
    validatorCompiler: bodyValidator(quickBatch),
    schema: {
      tags,
      operationId: 'submitBatch',
      summary: 'Submit many jobs: all are accepted, or none',
      headers: idempotencyHeader,
      body: submitBatch,
      response: {
        201: submittedBatch.describe('Accepted'),
        200: submittedBatch.describe('Known key'),
      },
    },
    handler: async (request, reply) => {
      const { ids, replayed } = await submit(request, request.body.jobs);
      if (replayed) return reply.header(REPLAYED, 'true').send(found({ ids }));
      return reply.code(201).send(found({ ids }));
    },
  });
}

function readRoutes(app: App, coordinator: Coordinator, limits: GatewayLimits): void {
  app.route({
    method: 'GET',
    url: '/v1/jobs',
    config: { access },
    schema: {
      tags,
      operationId: 'listJobs',
      summary: 'List jobs, newest first',
      querystring: listJobsQuery,
      response: { 200: listCached(jobView) },
    },
    handler: async ({ principal, query }, reply) =>
      tellAge(reply, page(await coordinator.listJobs(principal, query))),
  });

  app.route({
    method: 'GET',
    url: '/v1/jobs/:id',
    config: { access },
    schema: {
      tags,
      operationId: 'getJob',
      summary: 'One job',
      params: jobParams,
      response: { 200: oneCached(jobView) },
    },
    handler: async ({ principal, params }, reply) =>
      tellAge(reply, found(await coordinator.getJob(principal, params.id))),
  });

  app.route({
    method: 'GET',
    url: '/v1/jobs/:id/wait',
    config: { access, pace: 'longPoll' },
    schema: {
      tags,
      operationId: 'waitJob',
      summary: 'Wait until a job has ended, or for so long; then the job as it is',
      params: jobParams,
      querystring: z.strictObject({
        waitMs: wholeNumber(0, limits.waitMs)
          .default(DEFAULT_WAIT_MS)
          .describe('The longest wait')
          .meta(saysOf(DEFAULT_WAIT_MS, DEFAULT_WAIT_MS)),
      }),
      response: { 200: one(jobView) },
    },
    handler: async ({ principal, params, query }) =>
      found(await coordinator.waitJob(principal, params.id, query.waitMs)),
  });
}

function detailRoutes(app: App, coordinator: Coordinator): void {
  const shared = { tags, params: jobParams, querystring: pageQuery };
  app.route({
    method: 'GET',
    url: '/v1/jobs/:id/tasks',
    config: { access },
    schema: {
      ...shared,
      operationId: 'listTasks',
      summary: "A job's tasks",
      response: { 200: list(taskView) },
    },
    handler: async ({ principal, params, query }) =>
      page(await coordinator.listTasks(principal, params.id, query)),
  });

  app.route({
    method: 'GET',
    url: '/v1/jobs/:id/attempts',
    config: { access },
    schema: {
      ...shared,
      querystring: taskPageQuery,
      operationId: 'listAttempts',
      summary: "All attempts of a job's tasks",
      response: { 200: list(attemptView) },
    },
    handler: async ({ principal, params, query }) =>
      page(await coordinator.listAttempts(principal, params.id, query)),
  });

  app.route({
    method: 'GET',
    url: '/v1/jobs/:id/events',
    config: { access },
    schema: {
      ...shared,
      operationId: 'listEvents',
      summary: 'What happened to a job',
      response: { 200: list(eventView) },
    },
    handler: async ({ principal, params, query }) =>
      page(await coordinator.listEvents(principal, params.id, query)),
  });

  app.route({
    method: 'GET',
    url: '/v1/jobs/:id/why',
    config: { access },
    schema: {
      tags,
      operationId: 'why',
      summary: 'Why a job waits, who is ahead of it, and what would let it run',
      params: jobParams,
      response: { 200: one(whyView) },
    },
    handler: async ({ principal, params }) => found(await coordinator.why(principal, params.id)),
  });

  app.route({
    method: 'GET',
    url: '/v1/jobs/:id/receipt',
    config: { access },
    schema: {
      tags,
      operationId: 'receipt',
      summary: 'Where a job ran, what it cost, what was lost by whose fault, and what to do next',
      params: jobParams,
      response: { 200: one(receiptView) },
    },
    handler: async ({ principal, params }) =>
      found(await coordinator.receipt(principal, params.id)),
  });
}

export const priorityBody = z
  .strictObject({ priority: z.enum(PRIORITIES) })
  .meta({ examples: [{ priority: 'batch' }] });

function priorityRoute(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'POST',
    url: '/v1/jobs/:id/priority',
    config: { access: 'jobs:manage', failures: ['CONFLICT'] },
    schema: {
      tags,
      operationId: 'setPriority',
      summary: 'Move a job to another band: what waits is planned anew, what runs goes on',
      params: jobParams,
      body: priorityBody,
      response: { 200: one(jobView) },
    },
    handler: async ({ principal, params, body }) =>
      found(await coordinator.setPriority(principal, params.id, body.priority)),
  });
}

function cancelRoutes(app: App, coordinator: Coordinator): void {
  for (const [method, url, operationId] of [
    ['POST', '/v1/jobs/:id/cancel', 'cancelJob'],
    ['DELETE', '/v1/jobs/:id', 'deleteJob'],
  ] as const) {
    app.route({
      method,
      url,
      config: { access: 'jobs:manage' },
      schema: {
        tags,
        operationId,
        summary: 'Cancel a job; one that has ended stays as it is',
        params: jobParams,
        response: { 200: one(jobView) },
      },
      handler: async ({ principal, params }) =>
        found(await coordinator.cancelJob(principal, params.id)),
    });
  }
}
