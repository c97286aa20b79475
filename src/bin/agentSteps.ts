/** The steps an agent takes around a command, in their order, built from its settings. */
import type { IdentityFile } from '../agent/agent.ts';
import type { Step } from '../agent/around.ts';
import { ContentCache } from '../agent/cache/contentCache.ts';
import { checkCacheFolder } from '../agent/cache/folder.ts';
import { createCodeStep } from '../agent/code/codeStep.ts';
import { createInputStep } from '../agent/inputs/inputStep.ts';
import type { Clock } from '../lib/clock.ts';
import type { Settings } from '../model/settings.ts';
import type { BlobClientOptions } from '../protocol/blobClient.ts';

export interface StepOptions {
  settings: Settings;
  url: string;
  identity: IdentityFile;
  clock: Clock;
}

export function aroundSteps({ settings, url, identity, clock }: StepOptions): Step[] {
  const { dataDir, cache: cacheSettings } = settings.agent;
  checkCacheFolder(cacheSettings.folder, dataDir);
  // Read anew each time: a worker that joins again has another token.
  const blobs = (attempt: string): BlobClientOptions => ({
    url,
    token: identity.load()?.token,
    attempt,
  });
  const cache = new ContentCache({ ...cacheSettings, clock });
  const { folder } = cacheSettings;
  return [
    createCodeStep({ cache, blobs }),
    createInputStep({ cache, folder, blobs, env: process.env }),
  ];
}
