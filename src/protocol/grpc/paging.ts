/** Which page a caller asks for. */
import type { PageRequest } from '../gen/drover/v1/coordinator_pb.ts';
import { pageQuery, taskPageQuery, type PageQuery, type TaskPageQuery } from '../jobs.ts';
import { parse } from './check.ts';

export function pageFields(page: PageRequest | undefined): { cursor?: string; limit?: number } {
  return {
    ...(page?.cursor !== undefined && { cursor: page.cursor }),
    ...(page && page.limit !== 0 && { limit: page.limit }),
  };
}

export function pageOf(page: PageRequest | undefined): PageQuery {
  return parse(pageQuery, pageFields(page));
}

export function taskPageOf(page: PageRequest | undefined, task: number | undefined): TaskPageQuery {
  return parse(taskPageQuery, { ...pageFields(page), ...(task !== undefined && { task }) });
}
