/** The steps an agent takes around a command, in their order, built from its settings. */
import { join } from 'node:path';
import type { IdentityFile } from '../agent/agent.ts';
import type { Step } from '../agent/around.ts';
import { ContentCache } from '../agent/cache/contentCache.ts';
import { checkCacheFolder } from '../agent/cache/folder.ts';
import { createCheckpoints, type Checkpoints } from '../agent/checkpoints/checkpoints.ts';
import { createCodeStep } from '../agent/code/codeStep.ts';
import { containerSteps, sweepContainers } from '../agent/environments/containers/containers.ts';
import { isInsideContainer, type ContainerHost } from '../agent/environments/containers/host.ts';
import { lockStep } from '../agent/environments/locks/lockStep.ts';
import { moduleStep } from '../agent/environments/modules/modules.ts';
import { EnvironmentStore, keyOf } from '../agent/environments/store.ts';
import type { ContainerHost } from '../agent/environments/containers/host.ts';
import { createInputStep } from '../agent/inputs/inputStep.ts';
import { createMachineFacts } from '../agent/machineFacts.ts';
import { createResults } from '../agent/results/results.ts';
import { secretStep } from '../agent/secrets/secrets.ts';
import type { HttpTransport } from '../agent/transport.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { systemRandom } from '../lib/random.ts';
import type { Settings } from '../model/settings.ts';
import type { JoinRequest } from '../protocol/agent.ts';
import { environmentSteps } from './environmentSteps.ts';

export interface StepOptions {
  settings: Settings;
  url: string;
  identity: IdentityFile;
  transport: HttpTransport;
  resources: JoinRequest['resources'];
  containers: ContainerHost | null;
  /** What starts images here; null: nothing. */
  containers: ContainerHost | null;
  clock: Clock;
  log: Log;
}

export function aroundSteps(options: StepOptions): { steps: Step[]; checkpoints: Checkpoints } {
  const { settings, url, identity, transport, resources, clock, log } = options;
  const { dataDir, cache: cacheSettings } = settings.agent;
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
  const { env } = process;
  const store = environmentStore(settings, clock);
  const agent = keyOf([dataDir]).slice(0, 16);
  const { containers: host } = options;
  const containers = { host, insideContainer: isInside(settings), store, agent, env, clock };
  const { start, remove } = containerSteps(containers);
  sweepContainers(containers, join(dataDir, 'attempts')).then(
    (uids) => uids.length > 0 && log.info({ uids }, 'containers left by an earlier agent are gone'),
    (error: unknown) => log.warn({ error }, 'containers of an earlier agent were not looked for'),
  );
  const environment = environmentSteps(options);
  const steps = [
    environment.remove,
    createMachineFacts(resources),
    createCodeStep({ cache, blobs }),
    // Before the inputs: a job's own AWS_* and HF_TOKEN open what the agent's do not.
    secretStep({ url, fetchSecrets }),
    ...environment.build,
    createInputStep({ cache, folder, blobs, env: process.env }),
    // Its container is gone before anything it left is kept.
    remove,
    createInputStep({ cache, folder, blobs, env }),
    moduleStep({ env, clock }),
    lockStep({ store, clock }),
    checkpoints,
    createResults(blobs),
    environment.start,
    // The last: the container gets what all others prepared.
    start,
  ];
  return { steps, checkpoints };
}

export function isInside({ agent }: Settings): boolean {
  return agent.insideContainer === 'auto' ? isInsideContainer() : agent.insideContainer === 'yes';
}

function environmentStore({ agent }: Settings, clock: Clock): EnvironmentStore {
  const { dataDir, environments } = agent;
  return new EnvironmentStore({
    folder: join(dataDir, 'environments'),
    attempts: join(dataDir, 'attempts'),
    ...environments,
    clock,
    random: systemRandom,
  });
}
