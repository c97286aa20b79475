/** The shape of every success: `{ data, meta }`. */
import { z } from 'zod';
import type { Page } from '../../protocol/coordinator.ts';

/** Of what a gateway apart remembers of jobs, and shows while the coordinator is away. */
const cachedMeta = {
  cached: z.literal(true).optional().describe('Not live: as this gateway saw it before'),
  ageMs: z.number().optional().describe('How old it is at most'),
  config: z.record(z.string(), z.string()).optional().describe('What a training job asked for'),
};
const emptyMeta = z.object({});
const pageMeta = z.object({
  nextCursor: z.string().nullable().describe('Pass as `cursor` for the next page; null at the end'),
});

export const one = <Item extends z.ZodType>(item: Item) =>
  z.object({ data: item, meta: emptyMeta });

export const list = <Item extends z.ZodType>(item: Item) =>
  z.object({ data: z.array(item), meta: pageMeta });

export const oneCached = <Item extends z.ZodType>(item: Item) =>
  z.object({ data: item, meta: z.object(cachedMeta) });

export const listCached = <Item extends z.ZodType>(item: Item) =>
  z.object({ data: z.array(item), meta: pageMeta.extend(cachedMeta) });

/** Any id; what is none names nothing, and no database is asked for it. */
const ID = /^[A-Za-z0-9._-]{1,100}$/;
export const idOf = (what: string, example: string) =>
  z.strictObject({
    id: z
      .string()
      .regex(ID)
      .describe(`The id of ${what}`)
      .meta({ examples: [example] }),
  });

export const jobParams = idOf('a job', 'jmi1qx2k8a7c101');
export const tokenParams = idOf('a token', 'tmi1qx2k8a7c101');
export const workerParams = idOf('a worker', 'wmi1qx2k8a7c101');

export function found<Item>(data: Item): { data: Item; meta: Record<string, never> } {
  return { data, meta: {} };
}

export function page<Item>({ items, nextCursor }: Page<Item>): {
  data: Item[];
  meta: { nextCursor: string | null };
} {
  return { data: items, meta: { nextCursor } };
}

/** A list that has no pages. */
export function whole<Item>(data: Item[]): { data: Item[]; meta: { nextCursor: null } } {
  return { data, meta: { nextCursor: null } };
}
