/** What all answers and lists of the training surface have in common. */
import { z } from 'zod';
import type { Page } from '../../protocol/coordinator.ts';
import { LIST_PAGE_LIMIT } from '../../protocol/jobs.ts';
import { pageLimit } from '../../protocol/queries.ts';
import { describedEvent } from '../stream/sse.ts';
import { trainingFailure } from './failure.ts';

const DEFAULT_PAGE = 50;

/** For `response` of a route: its success, and this surface's own failure. */
export function answers<Data extends z.ZodType>(data: Data) {
  return { 200: z.object({ success: z.literal(true), data }), default: failure };
}

const failure = {
  description: 'What went wrong and what to try',
  content: { 'application/json': { schema: trainingFailure } },
};

/** The same for what is sent as events. */
export const streams = {
  200: {
    description: 'Events as they come, until the job has ended',
    content: { 'text/event-stream': { schema: describedEvent('log', 'metrics') } },
  },
  default: failure,
};

export function success<Data>(data: Data): { success: true; data: Data } {
  return { success: true, data };
}

export const pageFields = {
  page_size: pageLimit(LIST_PAGE_LIMIT, DEFAULT_PAGE),
  page_token: z
    .string()
    .max(200)
    .optional()
    .describe('next_page_token of the page before; left out for the first page'),
};
export const pageQuery = z.strictObject(pageFields);

const nextPageToken = z.string().nullable().describe('Null at the end');

/** A page of this surface as the Coordinator asks for one. */
export function pageOf({ page_size, page_token }: z.infer<typeof pageQuery>): {
  limit: number;
  cursor?: string;
} {
  return { limit: page_size, ...(page_token !== undefined && { cursor: page_token }) };
}

/** `name` is what the list holds: `{ jobs: […], next_page_token }`. */
export function listOf<Name extends string, Item extends z.ZodType>(name: Name, item: Item) {
  const shape = { [name]: z.array(item) } as Record<Name, z.ZodArray<Item>>;
  return z.object({ ...shape, next_page_token: nextPageToken });
}

export function pageAnswer<Name extends string, Item>(
  name: Name,
  items: Item[],
  { nextCursor }: Page<unknown>,
) {
  const named = { [name]: items } as Record<Name, Item[]>;
  return success({ ...named, next_page_token: nextCursor });
}
