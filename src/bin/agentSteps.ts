/** The steps an agent takes around a command, in their order, built from its settings. */
import type { IdentityFile } from '../agent/agent.ts';
import type { Step } from '../agent/around.ts';
import { ContentCache } from '../agent/cache/contentCache.ts';
import { checkCacheFolder } from '../agent/cache/folder.ts';
import { createCacheReport, type CacheReport } from '../agent/cache/report.ts';
import { createCheckpoints, type Checkpoints } from '../agent/checkpoints/checkpoints.ts';
import { createCodeStep } from '../agent/code/codeStep.ts';
import type { ContainerHost } from '../agent/environments/containers/host.ts';
import { createInputStep } from '../agent/inputs/inputStep.ts';
import { createDeviceReader } from '../agent/metrics/devices.ts';
import { createMetrics } from '../agent/metrics/metrics.ts';
import { createMachineFacts } from '../agent/machineFacts.ts';
import { createResults } from '../agent/results/results.ts';
import { secretStep } from '../agent/secrets/secrets.ts';
import { tokenStep } from '../agent/tokens/tokens.ts';
import { createHealthStep, type HealthView } from '../agent/health/healthStep.ts';
import type { HttpTransport } from '../agent/transport.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Settings } from '../model/settings.ts';
import type { JoinRequest } from '../protocol/agent.ts';
import { environmentSteps } from './environmentSteps.ts';

export interface StepOptions {
  settings: Settings;
  url: string;
  identity: IdentityFile;
  transport: HttpTransport;
  resources: JoinRequest['resources'];
  health: HealthView;
  /** What starts images here; null: nothing. */
  containers: ContainerHost | null;
  /** An attempt may have metrics by now. */
  lookForMetrics: (uid: string) => void;
  clock: Clock;
  log: Log;
}

export interface Steps {
  steps: Step[];
  checkpoints: Checkpoints;
  cacheReport: CacheReport;
}

export function aroundSteps(options: StepOptions): Steps {
  const { settings, url, identity, transport, resources, clock, log } = options;
  const { dataDir, caFile, cache: cacheSettings } = settings.agent;
  checkCacheFolder(cacheSettings.folder, dataDir);
  // Read anew each time: a worker that joins again has another token.
  const workerToken = (): string => identity.load()?.token ?? '';
  const blobs = (attempt: string) => ({ url, token: workerToken(), attempt });
  const cache = new ContentCache({ ...cacheSettings, clock });
  const { folder } = cacheSettings;
  const checkpoints = createCheckpoints({
    blobsOf: blobs,
    addCheckpoint: (report) => transport.addCheckpoint(workerToken(), report),
    clock,
    log,
  });
  const fetchSecrets = (uid: string) => transport.attemptSecrets(workerToken(), uid);
  const fetchTokens = (uid: string) => transport.attemptTokens(workerToken(), uid);
  const environment = environmentSteps(options);
  const steps = [
    environment.remove,
    createHealthStep(options.health),
    createMachineFacts(resources),
    createCodeStep({ cache, blobs }),
    // Before the inputs: a job's own AWS_* and HF_TOKEN open what the agent's do not.
    secretStep({ url, caFile, fetchSecrets }),
    tokenStep({ fetchTokens, clock, log }),
    createInputStep({ cache, folder, blobs, env: process.env }),
    ...environment.build,
    checkpoints,
    createMetrics({
      periodMs: settings.agent.metricsMs,
      readDevices: createDeviceReader(process.env, log),
      look: options.lookForMetrics,
      clock,
      log,
    }),
    createResults(blobs),
    environment.start,
  ];
  return { steps, checkpoints, cacheReport: createCacheReport(cache, log) };
}
