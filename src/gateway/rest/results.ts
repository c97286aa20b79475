/** /v1/jobs/{id}/result: what a task left, listed; the bytes are blobs. */
import type { BlobStore } from '../../blobs/contract.ts';
import { DroverError } from '../../lib/errors.ts';
import type { BlobHash } from '../../model/blob.ts';
import { parseManifest, type Manifest } from '../../model/manifest.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import { resultView, taskPageQuery, type AttemptView } from '../../protocol/jobs.ts';
import type { App } from '../app.ts';
import { found, jobParams, one } from './envelope.ts';

/** Some half a million files; a longer list has to be fetched as the blob it is. */
export const MANIFEST_BYTES = 64 * 1024 * 1024;
/** Attempts of a task that are looked through, a page at a time. */
const ATTEMPTS_PAGE = 500;

export interface ResultRouteOptions {
  coordinator: Coordinator;
  store: BlobStore;
}

export function resultRoutes(app: App, options: ResultRouteOptions): void {
  app.route({
    method: 'GET',
    url: '/v1/jobs/:id/result',
    config: { access: 'jobs:read', failures: ['BODY_TOO_LARGE'] },
    schema: {
      tags: ['jobs'],
      operationId: 'getResult',
      summary: "What a task left, its first task's where none is named",
      params: jobParams,
      querystring: taskPageQuery.pick({ task: true }),
      response: { 200: one(resultView) },
    },
    handler: async ({ principal, params, query }) => {
      const { coordinator, store } = options;
      const task = query.task ?? (await firstTask(coordinator, principal, params.id));
      const attempt = await newestWithResult(coordinator, principal, params.id, task);
      const { files, links } = await readManifest(store, principal.tenant, attempt.result!);
      return found({
        task: attempt.task,
        attempt: attempt.uid,
        manifest: attempt.result!,
        bytes: attempt.resultBytes ?? 0,
        files,
        links,
      });
    },
  });
}

export async function firstTask(
  coordinator: Coordinator,
  who: Principal,
  job: string,
): Promise<number> {
  const { items } = await coordinator.listTasks(who, job, { limit: 1 });
  return items[0]?.index ?? 0;
}

async function newestWithResult(
  coordinator: Coordinator,
  who: Principal,
  job: string,
  task: number,
): Promise<AttemptView> {
  const newest = await findResult(coordinator, who, job, task);
  if (newest) return newest;
  throw new DroverError('NOT_FOUND', `task ${job}.${task} has left no result`, {
    hint: `Files in $DROVER_RESULT_DIR are its result once it has ended; see drover job ${job}.`,
  });
}

/** The newest attempt of a task that left one. */
export async function findResult(
  coordinator: Coordinator,
  who: Principal,
  job: string,
  task: number,
): Promise<AttemptView | undefined> {
  let newest: AttemptView | undefined;
  let cursor: string | undefined;
  do {
    const query = { limit: ATTEMPTS_PAGE, task, ...(cursor !== undefined && { cursor }) };
    const page = await coordinator.listAttempts(who, job, query);
    newest = page.items.findLast((attempt) => attempt.result !== null) ?? newest;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return newest;
}

export async function readManifest(
  store: BlobStore,
  tenant: string,
  hash: string,
): Promise<Manifest> {
  const known = await store.stat(tenant, hash as BlobHash);
  if (known && known.size > MANIFEST_BYTES) {
    throw new DroverError('BODY_TOO_LARGE', `The list of files has ${known.size} bytes`, {
      hint: `Fetch it as the blob ${hash}.`,
    });
  }
  const chunks: Buffer[] = [];
  for await (const chunk of await store.open(tenant, hash as BlobHash)) {
    chunks.push(chunk as Buffer);
  }
  return parseManifest(Buffer.concat(chunks).toString());
}
