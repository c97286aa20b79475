/** /v1/jobs/{id}/capsule: what a job ran, put together from what is kept of it. */
import type { Principal } from '../../model/token.ts';
import { CAPSULE_TASKS, capsuleView, type CapsuleView } from '../../protocol/capsule.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import type { WorkerView } from '../../protocol/fleet.ts';
import type { AttemptView } from '../../protocol/jobs.ts';
import type { App } from '../app.ts';
import { found, jobParams, one } from './envelope.ts';

const PAGE = 500;

export function capsuleRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url: '/v1/jobs/:id/capsule',
    config: { access: 'jobs:read' },
    schema: {
      tags: ['jobs'],
      operationId: 'capsule',
      summary: 'All it takes to know what a job ran, and to run it again',
      params: jobParams,
      response: { 200: one(capsuleView) },
    },
    handler: async ({ principal, params }) =>
      found(await capsuleOf(coordinator, principal, params.id)),
  });
}

async function capsuleOf(
  coordinator: Coordinator,
  who: Principal,
  id: string,
): Promise<CapsuleView> {
  const job = await coordinator.getJob(who, id);
  const newest = await newestAttempts(coordinator, who, id);
  const machines = who.scopes.includes('fleet:read')
    ? await workers(coordinator, who, new Set(newest.map(({ worker }) => worker)))
    : new Map<string, WorkerView>();
  const { tenant, owner, createdAtMs, state, exitCode } = job;
  return {
    ...{ job: job.id, tenant, owner, createdAtMs, state, exitCode },
    spec: job.spec!,
    attempts: newest.map((attempt) => {
      const { task, n, worker, cause, facts, result } = attempt;
      const { name, agentVersion, attributes, devices } = machines.get(worker) ?? {};
      const machine = name === undefined ? null : { name, agentVersion, attributes, devices };
      const how = { state: attempt.state, exitCode: attempt.exitCode };
      return { task, n, worker, ...how, cause, facts, result, machine } as Capsuled;
    }),
  };
}

type Capsuled = CapsuleView['attempts'][number];

/** By task, in their order. */
async function newestAttempts(
  coordinator: Coordinator,
  who: Principal,
  job: string,
): Promise<AttemptView[]> {
  const newest = new Map<string, AttemptView>();
  let cursor: string | undefined;
  do {
    const page = { limit: PAGE, ...(cursor !== undefined && { cursor }) };
    const { items, nextCursor } = await coordinator.listAttempts(who, job, page);
    for (const attempt of items) {
      if (newest.has(attempt.task) || newest.size < CAPSULE_TASKS)
        newest.set(attempt.task, attempt);
    }
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined && newest.size < CAPSULE_TASKS);
  return [...newest.values()];
}

async function workers(
  coordinator: Coordinator,
  who: Principal,
  wanted: ReadonlySet<string>,
): Promise<Map<string, WorkerView>> {
  const known = new Map<string, WorkerView>();
  let cursor: string | undefined;
  do {
    const page = { limit: PAGE, ...(cursor !== undefined && { cursor }) };
    const { items, nextCursor } = await coordinator.listWorkers(who, page);
    for (const worker of items) if (wanted.has(worker.id)) known.set(worker.id, worker);
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined && known.size < wanted.size);
  return known;
}
