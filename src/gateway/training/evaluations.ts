/** Evaluations: jobs that look at a checkpoint of a training and leave scores. */
import { z } from 'zod';
import type { BlobStore } from '../../blobs/contract.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import { LIST_PAGE_LIMIT, type CheckpointView, type JobView } from '../../protocol/jobs.ts';
import type { App } from '../app.ts';
import { jobParams } from '../rest/envelope.ts';
import { SUBMIT_FAILURES } from '../rest/jobs.ts';
import { idempotencyHeader, REPLAYED } from '../rest/idempotency.ts';
import { firstTask } from '../rest/results.ts';
import { block, blocksOf, checkBlocks, EVALUATION_NAME, type Blocks } from './blocks.ts';
import { answers, listOf, pageAnswer, pageFields, pageOf, success } from './envelope.ts';
import { TRAINING_PREFIX } from './failure.ts';
import { statusFilter, submitOne, templateOf } from './jobs.ts';
import type { MakeJob } from './makeJob.ts';
import { readScores } from './scores.ts';
import type { Templates } from './templates.ts';
import { evaluation, evaluationSummary, evaluationSummaryOf } from './evaluationViews.ts';

export interface EvaluationRouteOptions {
  coordinator: Coordinator;
  store: BlobStore;
  templates: Templates;
  makeJob: MakeJob;
}

const tags = ['training'];
const url = `${TRAINING_PREFIX}/evaluations`;
const wish = z
  .strictObject({
    job_id: z.string().min(1).max(100),
    checkpoint: z.int().min(1).optional().describe('Its number; the newest unless given'),
    task: z.int().min(0).optional().describe("Its task's index; the first unless given"),
    template: z.string().max(100).optional().describe("The training template's own unless given"),
    config: block.default(() => ({})),
  })
  .superRefine(({ config }, context) => checkBlocks({ config }, context))
  .meta({ id: 'EvaluationSubmission', examples: [{ job_id: 'jmi1qx2k8a7c101', checkpoint: 3 }] });
type Wish = z.infer<typeof wish>;

export function evaluationRoutes(app: App, options: EvaluationRouteOptions): void {
  createRoute(app, options);
  readRoutes(app, options);
}

function createRoute(app: App, options: EvaluationRouteOptions): void {
  const { coordinator, makeJob } = options;
  app.route({
    method: 'POST',
    url,
    config: { access: 'jobs:manage', failures: [...SUBMIT_FAILURES, 'NO_SPACE'] },
    schema: {
      tags,
      operationId: 'createEvaluation',
      summary: 'Evaluate a checkpoint of a training: a job that leaves scores',
      headers: idempotencyHeader,
      body: wish,
      response: answers(evaluation),
    },
    handler: async (request, reply) => {
      const { principal, body } = request;
      const training = await coordinator.getJob(principal, body.job_id);
      const blocks = blocksOf(training.spec?.annotations ?? {});
      if (!blocks) throw noTraining(body.job_id);
      const template = await evaluationTemplate(options.templates, blocks, body);
      const { task, n, manifest } = await chosen(coordinator, principal, body);
      const source = {
        job_id: body.job_id,
        task,
        checkpoint: n,
        manifest,
        template: template.name,
      };
      const { config } = body;
      const spec = await makeJob({
        tenant: principal.tenant,
        template: template.name,
        field: template.field,
        values: { ...blocks, evaluation: config, source: { ...source, tree: `tree:${manifest}` } },
        own: {
          name: EVALUATION_NAME,
          annotations: { evaluation: JSON.stringify({ ...source, config }) },
        },
      });
      const { id, replayed } = await submitOne(coordinator, request, spec);
      if (replayed) reply.header(REPLAYED, 'true');
      return success(await detailsOf(options, principal, await coordinator.getJob(principal, id)));
    },
  });
}

function noTraining(id: string): DroverError {
  return new DroverError('CONFLICT', `The job ${id} was not submitted as a training`, {
    hint: `POST ${TRAINING_PREFIX}/jobs submits one; only its checkpoints can be evaluated.`,
  });
}

/** The one that was asked for, or the one that the training's own template names. */
async function evaluationTemplate(
  templates: Templates,
  blocks: Blocks,
  { template: asked }: Wish,
): Promise<{ name: string; field: string }> {
  if (asked !== undefined) return { name: asked, field: 'template' };
  const { template: name, field } = templateOf(blocks);
  const { evaluation: own } = await templates.read(name, `${field} of the job`);
  if (own) return { name: own, field: `evaluation of the template ${name}` };
  throw new DroverError('INVALID_ARGUMENT', `template: the template ${name} names no evaluation`, {
    hint: 'Name a template for the evaluation by "template".',
  });
}

/** Of one task only so many are kept that one page holds them all. */
async function chosen(
  coordinator: Coordinator,
  who: Principal,
  { job_id: job, checkpoint, task }: Wish,
): Promise<CheckpointView> {
  const index = task ?? (await firstTask(coordinator, who, job));
  const query = { limit: LIST_PAGE_LIMIT, task: index };
  const { items } = await coordinator.listCheckpoints(who, job, query);
  const found = checkpoint === undefined ? items.at(-1) : items.find(({ n }) => n === checkpoint);
  if (found) return found;
  if (items.length === 0) {
    throw new DroverError('CONFLICT', `Task ${index} of the job ${job} has no checkpoint yet`, {
      hint: `GET ${TRAINING_PREFIX}/jobs/${job}/checkpoints lists them as they come.`,
    });
  }
  throw new DroverError('NOT_FOUND', `The job ${job} has no checkpoint ${checkpoint}`, {
    hint: `There are ${items.map(({ n }) => n).join(', ')}.`,
  });
}

function readRoutes(app: App, options: EvaluationRouteOptions): void {
  const { coordinator } = options;
  const config = { access: 'jobs:read' } as const;
  app.route({
    method: 'GET',
    url,
    config,
    schema: {
      tags,
      operationId: 'listEvaluations',
      summary: 'List evaluations without their scores, newest first',
      querystring: z.strictObject({ ...pageFields, status: statusFilter }),
      response: answers(listOf('evaluations', evaluationSummary)),
    },
    handler: async ({ principal, query }) => {
      const { status } = query;
      const page = await coordinator.listJobs(principal, {
        ...pageOf(query),
        name: EVALUATION_NAME,
        ...(status !== undefined && { state: status }),
      });
      const jobs = await Promise.all(page.items.map((job) => whole(coordinator, principal, job)));
      const found = jobs.flatMap((job) => evaluationSummaryOf(job) ?? []);
      return pageAnswer('evaluations', found, page);
    },
  });

  app.route({
    method: 'GET',
    url: `${url}/:id`,
    config,
    schema: {
      tags,
      operationId: 'getEvaluation',
      summary: 'One evaluation, with its scores once it has ended',
      params: jobParams,
      response: answers(evaluation),
    },
    handler: async ({ principal, params }) =>
      success(await detailsOf(options, principal, await coordinator.getJob(principal, params.id))),
  });
}

/** Lists leave out the spec, and with it what was evaluated. */
function whole(coordinator: Coordinator, who: Principal, job: JobView): Promise<JobView> {
  return job.spec ? Promise.resolve(job) : coordinator.getJob(who, job.id);
}

async function detailsOf(
  { coordinator, store }: EvaluationRouteOptions,
  who: Principal,
  job: JobView,
): Promise<z.infer<typeof evaluation>> {
  const found = evaluationSummaryOf(job);
  if (!found) throw new DroverError('NOT_FOUND', `There is no evaluation ${job.id}`);
  return { ...found, ...(await readScores({ coordinator, store, who, job })) };
}
