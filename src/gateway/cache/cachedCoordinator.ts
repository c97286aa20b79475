/**
 * A coordinator elsewhere with a cache beside it: what it lists is remembered, and shown, marked,
 * while it is away or slow. Everything but reading jobs passes through.
 */
import type { FastifyReply } from 'fastify';
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import { isCacheCursor, type JobCache, type JobConfig, type Kept } from './jobCache.ts';

export interface CachedOptions {
  cache: JobCache;
  clock: Clock;
  /** A coordinator that takes longer is answered for, where something is known. */
  afterMs: number;
}

export function cachedCoordinator<Inner extends Coordinator>(
  inner: Inner,
  options: CachedOptions,
): Inner {
  const { cache } = options;
  return {
    ...inner,
    async listJobs(who, query) {
      if (!mayRead(who)) return inner.listJobs(who, query);
      if (isCacheCursor(query.cursor))
        return marked(goneOn(cache.list(who.tenant, query)), 'items');
      const asked = inner.listJobs(who, query).then((page) => {
        cache.remember(who.tenant, page.items);
        return page;
      });
      // A cursor of the coordinator's means nothing here.
      const kept = (): Kept<Awaited<typeof asked>> | undefined =>
        query.cursor === undefined ? cache.list(who.tenant, query) : undefined;
      return orKept(asked, () => markedOrNone(kept(), 'items'), options);
    },
    async getJob(who, id) {
      if (!mayRead(who)) return inner.getJob(who, id);
      const asked = inner.getJob(who, id).then(
        (job) => {
          cache.remember(who.tenant, [job]);
          return job;
        },
        (error: unknown) => {
          if (isCode(error, 'NOT_FOUND')) cache.forget(who.tenant, id);
          throw error;
        },
      );
      return orKept(asked, () => markedOrNone(cache.one(who.tenant, id)), options);
    },
  };
}

/** A running job sees its own line of jobs only, which the cache cannot tell apart. */
const mayRead = (who: Principal): boolean => who.job === undefined;

const SLOW = new DroverError('TIMEOUT', 'the coordinator takes longer than gateway.cacheAfterMs');

/** The live answer; or what is known, where that fails to come. */
async function orKept<Result>(
  asked: Promise<Result>,
  kept: () => Result | undefined,
  { clock, afterMs }: CachedOptions,
): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = clock.setTimer(afterMs, () => late.reject(SLOW));
  try {
    return await Promise.race([asked, late.promise]);
  } catch (error) {
    const isAway = isCode(error, 'UNAVAILABLE') || isCode(error, 'TIMEOUT');
    const known = isAway ? kept() : undefined;
    if (known !== undefined) {
      // It may still come, and is remembered then; nobody waits for it.
      asked.catch(() => {});
      return known;
    }
    if (error === SLOW) return asked;
    throw error;
  } finally {
    timer.cancel();
  }
}

function isCode(error: unknown, code: DroverError['code']): boolean {
  return error instanceof DroverError && error.code === code;
}

function goneOn<Item>(kept: Kept<Item> | undefined): Kept<Item> {
  if (kept) return kept;
  throw new DroverError('INVALID_ARGUMENT', 'this list was begun from a cache that is gone', {
    hint: 'Begin the list again, without a cursor.',
  });
}

/** What an answer says about itself, by its data. */
const MARKS = new WeakMap<object, Mark>();

interface Mark {
  ageMs: number;
  config?: JobConfig;
}

function marked<Item extends object>({ item, ageMs, config }: Kept<Item>, part?: keyof Item): Item {
  const data = part === undefined ? item : (item[part] as object);
  MARKS.set(data, { ageMs, ...(config && { config }) });
  return item;
}

function markedOrNone<Item extends object>(
  kept: Kept<Item> | undefined,
  part?: keyof Item,
): Item | undefined {
  return kept && marked(kept, part);
}

/** How old a job, or a list of jobs, is that came from the cache; undefined for a live one. */
export function markOf(data: object): Mark | undefined {
  return MARKS.get(data);
}

/** An answer that says so where it is not a live one. */
export function tellAge<Answer extends { data: object; meta: object }>(
  reply: FastifyReply,
  answer: Answer,
): Answer {
  const mark = markOf(answer.data);
  if (!mark) return answer;
  reply.header('age', Math.ceil(mark.ageMs / 1000));
  reply.header('warning', '110 - "The coordinator is away or slow: as seen before"');
  return { ...answer, meta: { ...answer.meta, cached: true, ...mark } };
}
