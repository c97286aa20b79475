/** The training surface: jobs as five blocks, at a prefix and in an envelope of its own. */
import type { BlobStore } from '../../blobs/contract.ts';
import type { BlobQuota } from '../../blobs/quota.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { TrainingSettings } from '../../model/trainingSettings.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import type { App } from '../app.ts';
import type { SseLimits } from '../stream/sse.ts';
import { codeStore } from './codeStore.ts';
import { evaluationRoutes } from './evaluations.ts';
import { trainingFleetRoutes } from './fleet.ts';
import { trainingJobRoutes } from './jobs.ts';
import { createMakeJob } from './makeJob.ts';
import { trainingStreamRoutes } from './streams.ts';
import { openTemplates } from './templates.ts';

export interface TrainingRouteOptions {
  coordinator: Coordinator;
  store: BlobStore;
  quota: BlobQuota;
  settings: TrainingSettings;
  clock: Clock;
  log: Log;
  limits?: Partial<SseLimits>;
}

export function trainingRoutes(app: App, options: TrainingRouteOptions): void {
  const { coordinator, store, settings } = options;
  const templates = openTemplates(settings.templates);
  const makeJob = createMakeJob(templates, codeStore(options));
  trainingJobRoutes(app, coordinator, makeJob);
  trainingStreamRoutes(app, options);
  trainingFleetRoutes(app, coordinator);
  evaluationRoutes(app, { coordinator, store, templates, makeJob });
}
