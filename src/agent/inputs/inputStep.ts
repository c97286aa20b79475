/** The inputs of a job: read-only at `$DROVER_INPUTS/<name>`, each had from where it lies. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BlobClientOptions } from '../../protocol/blobClient.ts';
import type { Step } from '../around.ts';
import type { ContentCache } from '../cache/contentCache.ts';
import { Unprepared } from '../runtimes/around.ts';
import { fromBlob, fromTree } from './fromBlobs.ts';
import { fromFile, fromPool } from './fromHost.ts';
import { fromHf } from './fromHf.ts';
import { fromHttp } from './fromHttp.ts';
import { fromS3 } from './fromS3.ts';
import { createNotes } from './notes.ts';
import type { Source } from './source.ts';

const SOURCES: Record<string, Source> = {
  blob: fromBlob,
  tree: fromTree,
  file: fromFile,
  pool: fromPool,
  http: fromHttp,
  https: fromHttp,
  s3: fromS3,
  hf: fromHf,
};

/** What the record of an attempt holds; further inputs are counted. */
const FACTS = 48;
const FACT_NAME_LENGTH = 100;

export interface InputOptions {
  cache: ContentCache;
  /** Holds what is known of addresses. */
  folder: string;
  blobs: (attempt: string) => BlobClientOptions;
  /** Of the agent; a job's own variables and secrets are the stronger. */
  env: Readonly<Record<string, string | undefined>>;
}

export function createInputStep({ cache, folder, blobs, env }: InputOptions): Step {
  const notes = createNotes(join(folder, 'addresses'));
  return {
    needsPreparation: ({ inputs }) => inputs !== undefined && inputs.length > 0,
    async prepare({ order, stage, home, task, facts, signal, say }) {
      const inputs = order.inputs!;
      mkdirSync(join(stage, 'inputs'), { mode: 0o700 });
      for (const [at, input] of inputs.entries()) {
        signal.throwIfAborted();
        say(`fetching the input ${input.name}`);
        const source = SOURCES[input.uri.slice(0, input.uri.indexOf(':'))];
        if (!source) throw new Unprepared(`input ${input.name}: no agent here knows ${input.uri}`);
        const target = join(stage, 'inputs', input.name);
        const variables = { ...env, ...task.env };
        const common = { cache, notes, env: variables, signal, say, blobs: blobs(order.uid) };
        const found = await source({ ...common, input, target });
        if (at < FACTS) facts[`input.${input.name}`.slice(0, FACT_NAME_LENGTH)] = found;
      }
      if (inputs.length > FACTS) facts['inputs'] = String(inputs.length);
      task.env['DROVER_INPUTS'] = join(home, 'inputs');
    },
  };
}
