/** Files longer than one call: parts go in order, and `after` reaches back over them by name. */
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { UsageError } from './args.ts';

/** One call takes so many; more go in several calls, each whole or not at all. */
export const BATCH_JOBS = 1000;

/** The server finds names within a call; a name in a later one has no job yet. */
export function checkOrder(specs: SubmittedSpec[]): void {
  if (specs.length <= BATCH_JOBS) return;
  const firstAt = new Map<string, number>();
  for (const [at, { name }] of specs.entries()) {
    if (name && !firstAt.has(name)) firstAt.set(name, at);
  }
  for (const [at, spec] of specs.entries()) {
    for (const { job } of spec.after ?? []) {
      const target = firstAt.get(job) ?? 0;
      if (partOf(target) <= partOf(at)) continue;
      throw new UsageError(
        `job ${at + 1}: after ${JSON.stringify(job)} names job ${target + 1}, ` +
          `which goes in a later part of ${BATCH_JOBS}`,
        'put a job behind those it waits for',
      );
    }
  }
}

function partOf(at: number): number {
  return Math.floor(at / BATCH_JOBS);
}

/** Of what is accepted so far. Of several jobs with one name, the last. */
export function idsByName(specs: SubmittedSpec[], ids: string[]): Map<string, string> {
  return new Map(ids.flatMap((id, at) => (specs[at]?.name ? [[specs[at].name, id]] : [])));
}

/** Names of earlier parts become ids; those of this part are for the server to find. */
export function linkBack(part: SubmittedSpec[], known: Map<string, string>): SubmittedSpec[] {
  if (known.size === 0) return part;
  const own = new Set(part.map((spec) => spec.name));
  const idOf = (job: string): string => (own.has(job) ? job : (known.get(job) ?? job));
  return part.map((spec) => {
    if (!spec.after) return spec;
    return { ...spec, after: spec.after.map((one) => ({ ...one, job: idOf(one.job) })) };
  });
}
