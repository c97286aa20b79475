/** The five blocks that describe a training: kept with the job as they were sent. */
import { z } from 'zod';
import { PRIORITIES } from '../../model/job.ts';
import { JOB_LIMITS } from '../../protocol/jobSpec.ts';
import { clean } from '../../protocol/texts.ts';

/** Also the names of the annotations that hold them. */
export const BLOCKS = ['model', 'data', 'training', 'resources', 'checkpoint'] as const;
export type BlockName = (typeof BLOCKS)[number];
export type Block = Record<string, unknown>;
export type Blocks = Record<BlockName, Block>;

/** Named limits, each with a test. */
export const BLOCK_LIMITS = {
  /** All five as JSON: with what a template adds they fit into the annotations of a job. */
  bytes: 48 * 1024,
  /** Lists and objects in each other: whatever walks through them may recurse. */
  depth: 32,
  nameLength: 200,
} as const;

/** Jobs of this name are evaluations; no training may take it. */
export const EVALUATION_NAME = 'scaimind-evaluation';

/** Any fields: which ones mean something is the template's to say. */
export const block = z.record(z.string().max(BLOCK_LIMITS.nameLength), z.unknown());
const optionalBlock = block.default(() => ({}));

/** With a template that comes along. */
const EXAMPLE = {
  name: 'first training',
  model: { type: 'linear', inputs: 8 },
  data: { samples: 1000, noise: 0.1 },
  training: { steps: 300, batch_size: 32, learning_rate: 0.5 },
  resources: { cpus: 0.5, memory_gb: 0.25 },
};

export const submission = z
  .strictObject({
    name: clean(JOB_LIMITS.nameLength)
      .refine((name) => name !== EVALUATION_NAME, 'is the name of evaluations')
      .optional(),
    priority: z.enum(PRIORITIES).optional(),
    model: block.describe('`type` names the template, unless training.template does'),
    data: optionalBlock,
    training: optionalBlock,
    resources: optionalBlock,
    checkpoint: optionalBlock,
  })
  .superRefine((body, context) => checkBlocks(body, context))
  .meta({ id: 'TrainingJobSubmission', examples: [EXAMPLE] });

/** Of any set of blocks: neither too deep nor, together, too long. */
export function checkBlocks(blocks: object, context: z.RefinementCtx): void {
  const fail = (path: string[], message: string): void =>
    context.addIssue({ code: 'custom', path, message });
  let bytes = 0;
  for (const [name, value] of Object.entries(blocks)) {
    if (typeof value !== 'object' || value === null) continue;
    if (isDeeper(value, BLOCK_LIMITS.depth)) {
      return fail([name], `is nested deeper than ${BLOCK_LIMITS.depth} levels`);
    }
    bytes += Buffer.byteLength(JSON.stringify(value));
  }
  if (bytes > BLOCK_LIMITS.bytes) {
    fail([], `the blocks have ${bytes} bytes as JSON, the limit is ${BLOCK_LIMITS.bytes}`);
  }
}

/** Without recursion: what is too deep for the stack must be refused, not fail. */
function isDeeper(value: object, levels: number): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= levels) return true;
    level = level.flatMap((one) =>
      Object.values(one).filter((child) => typeof child === 'object' && child !== null),
    ) as object[];
  }
  return false;
}

export function annotationsOf(blocks: Blocks): Record<BlockName, string> {
  const texts = BLOCKS.map((name) => [name, JSON.stringify(blocks[name])]);
  return Object.fromEntries(texts) as Record<BlockName, string>;
}

/** Null where the job has none: it was not submitted as a training. */
export function blocksOf(annotations: Readonly<Record<string, string>>): Blocks | null {
  const blocks: Partial<Blocks> = {};
  for (const name of BLOCKS) {
    const found = objectIn(annotations[name]);
    if (!found) return null;
    blocks[name] = found;
  }
  return blocks as Blocks;
}

/** Annotations are anybody's to write: what is no object counts as absent. */
export function objectIn(text: string | undefined): Block | null {
  if (text === undefined) return null;
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Block) : null;
  } catch {
    return null;
  }
}
