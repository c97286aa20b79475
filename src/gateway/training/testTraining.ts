/** A gateway with the training surface and blobs in a fresh folder, for tests. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BlobStore } from '../../blobs/contract.ts';
import { openFileBlobStore } from '../../blobs/files/fileBlobStore.ts';
import { createBlobQuota } from '../../blobs/quota.ts';
import { systemClock as clock } from '../../lib/clock.ts';
import { silentLog as log } from '../../lib/log.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import { createFakeCoordinator, type FakeCoordinator } from '../fakeCoordinator.ts';
import { Load } from '../load/load.ts';
import { startTestGateway } from '../testGateway.ts';
import { TRAINING_PREFIX } from './failure.ts';
import { trainingRoutes } from './routes.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
type Loose = Record<string, any>;

interface TrainingAnswer {
  status: number;
  headers: Headers;
  data: Loose;
  error: Loose;
}

interface AskOptions {
  token?: string | null;
  headers?: Record<string, string>;
}

export interface TestTraining extends AsyncDisposable {
  fake: FakeCoordinator;
  url: string;
  store: BlobStore;
  /** Holds the site's templates, where they are the test's own. */
  folder: string;
  /** Below the surface's prefix: `ask('POST /jobs', body)`. */
  ask(request: string, body?: unknown, options?: AskOptions): Promise<TrainingAnswer>;
  /** Writes a template into the site's folder. */
  template(name: string, text: string): void;
}

interface Options {
  overrides?: Partial<Coordinator>;
  /** A folder of the test's own instead of the shipped templates. */
  ownTemplates?: boolean;
  tenantQuotaBytes?: number;
}

export async function startTestTraining(options: Options = {}): Promise<TestTraining> {
  const folder = mkdtempSync(join(tmpdir(), 'drover-training-'));
  const store = await openFileBlobStore({ folder: join(folder, 'blobs'), clock });
  const { overrides = {}, ownTemplates = false, tenantQuotaBytes = 0 } = options;
  const quota = createBlobQuota(store, { tenantQuotaBytes, clock });
  const settings = { templates: ownTemplates ? folder : '' };
  const fake = createFakeCoordinator(overrides);
  const load = new Load({ streamsPerTenant: 2 });
  const gateway = await startTestGateway(
    {},
    {
      coordinator: fake,
      load,
      extraRoutes: (app) =>
        trainingRoutes(app, { coordinator: fake, store, quota, settings, clock, log }),
    },
  );
  return {
    fake,
    url: gateway.url + TRAINING_PREFIX,
    store,
    folder,
    async ask(request, body, call = {}) {
      const [method = 'GET', path = ''] = request.split(' ');
      const sent = { token: fake.adminToken, ...call, ...(body !== undefined && { body }) };
      const { json, status, headers } = await gateway.call(method, TRAINING_PREFIX + path, sent);
      return { status, headers, data: json.data ?? {}, error: (json['error'] as Loose) ?? {} };
    },
    template: (name, text) => writeFileSync(join(folder, `${name}.yaml`), text),
    async [Symbol.asyncDispose]() {
      await gateway.close();
      await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}
