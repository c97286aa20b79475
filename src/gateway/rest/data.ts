/** /v1/data: names of bytes that jobs use. /v1/gc: what nothing names any more. */
import { z } from 'zod';
import { findUnnamed, removeUnnamed } from '../../blobs/collect.ts';
import type { BlobStore } from '../../blobs/contract.ts';
import { noSuchBlob } from '../../blobs/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { BlobHash } from '../../model/blob.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import {
  COLLECTED_LISTED,
  collectionView,
  collectRequest,
  dataContent,
  dataName,
  dataView,
} from '../../protocol/dataSets.ts';
import type { App } from '../app.ts';
import { found, list, one, page } from './envelope.ts';

export interface DataRouteOptions {
  coordinator: Coordinator;
  store: BlobStore;
  clock: Clock;
}

const tags = ['data'];
const params = z.strictObject({
  name: dataName.describe('The name of a data set').meta({ examples: ['cifar-10'] }),
});

export function dataRoutes(app: App, options: DataRouteOptions): void {
  const { coordinator, store } = options;
  app.route({
    method: 'GET',
    url: '/v1/data',
    config: { access: 'jobs:read' },
    schema: {
      tags,
      operationId: 'listData',
      summary: "The tenant's data sets",
      response: { 200: list(dataView) },
    },
    handler: async ({ principal }) =>
      page({ items: await coordinator.listData(principal), nextCursor: null }),
  });

  app.route({
    method: 'PUT',
    url: '/v1/data/:name',
    config: { access: 'jobs:manage' },
    schema: {
      tags,
      operationId: 'putData',
      summary: 'Give a name to bytes that are in the blob store',
      params,
      body: dataContent,
      response: { 200: one(dataView) },
    },
    handler: async ({ principal, params: { name }, body }) => {
      // Asked as a client would before it sends: the answer keeps the blob from being collected.
      const [missing] = await store.missing(principal.tenant, [body.hash as BlobHash]);
      if (missing) throw noSuchBlob(missing);
      return found(await coordinator.putData(principal, { ...body, name }));
    },
  });

  app.route({
    method: 'DELETE',
    url: '/v1/data/:name',
    config: { access: 'jobs:manage' },
    schema: {
      tags,
      operationId: 'removeData',
      summary: 'Forget a name; the bytes stay while a job names them',
      params,
      response: { 200: one(z.object({ name: z.string() })) },
    },
    handler: async ({ principal, params: { name } }) => {
      await coordinator.removeData(principal, name);
      return found({ name });
    },
  });

  collectRoute(app, options);
}

function collectRoute(app: App, { coordinator, store, clock }: DataRouteOptions): void {
  app.route({
    method: 'POST',
    url: '/v1/gc',
    // Looks at every blob and every manifest: as long as that takes.
    config: { access: 'fleet:manage', pace: 'stream' },
    schema: {
      tags,
      operationId: 'collectBlobs',
      summary: "The tenant's blobs that nothing names; with `apply` they are removed",
      body: collectRequest,
      response: { 200: one(collectionView) },
    },
    handler: async ({ principal, body: { apply } }) => {
      const names = namesOf(coordinator, principal);
      const options = { store, tenant: principal.tenant, names, clock };
      const { unnamed, spared, kept } = await findUnnamed(options);
      const gone = apply ? await removeUnnamed(options, unnamed) : unnamed;
      return found({
        applied: apply,
        blobs: gone.length,
        bytes: gone.reduce((sum, { size }) => sum + size, 0),
        sparedBlobs: spared.blobs,
        sparedBytes: spared.bytes,
        keptBlobs: kept.blobs,
        keptBytes: kept.bytes,
        listed: gone.slice(0, COLLECTED_LISTED),
      });
    },
  });
}

async function* namesOf(coordinator: Coordinator, who: Principal): AsyncGenerator<string> {
  let cursor: string | null = null;
  do {
    const names: { items: string[]; nextCursor: string | null } = await coordinator.namedBlobs(
      who,
      cursor,
    );
    yield* names.items;
    cursor = names.nextCursor;
  } while (cursor !== null);
}
