/** What a gateway remembers of jobs: by tenant, bounded, marked, and never instead of the truth. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import { silentLog } from '../../lib/log.ts';
import type { JobId } from '../../model/ids.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import type { JobView, ListJobsQuery } from '../../protocol/jobs.ts';
import { jobSpec } from '../../protocol/jobSpec.ts';
import { cachedCoordinator, markOf } from './cachedCoordinator.ts';
import { JobCache } from './jobCache.ts';

let folder: string;
let cache: JobCache;
let now = 1_000_000;
const clock = { ...systemClock, now: () => now };
const open = (limits = {}): JobCache =>
  new JobCache({ file: join(folder, 'cache.db'), clock, log: silentLog, limits });
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-cache-'));
  cache = open();
});
afterEach(() => {
  cache.close();
  rmSync(folder, { recursive: true });
});

function job(id: string, more: Partial<JobView> = {}): JobView {
  return {
    ...{ id, name: `name of ${id}`, state: 'RUNNING', reason: '', kind: 'batch', cluster: 'local' },
    ...{ tenant: 'physics', owner: 'ada', submittingPrincipal: '', priority: 'batch', pool: '' },
    ...{ createdAtMs: Number(id.slice(1)), startedAtMs: null, endedAtMs: null },
    ...{ cancelRequestedAtMs: null, parent: null, root: null, exitCode: null },
    tasks: {
      ...{ total: 1, pending: 0, running: 1, succeeded: 0, failed: 0 },
      ...{ cancelled: 0, unschedulable: 0 },
    },
    ...more,
  };
}

const query = (more: Partial<ListJobsQuery> = {}): ListJobsQuery => ({ limit: 50, ...more });
const idsOf = (tenant: string, more: Partial<ListJobsQuery> = {}): string[] | undefined =>
  cache.list(tenant, query(more))?.item.items.map(({ id }) => id);

test('a tenant sees its own only, whatever the rows say of themselves', () => {
  cache.remember('physics', [job('j1'), job('j2')]);
  cache.remember('chemistry', [job('j1', { name: 'another' }), job('j3')]);
  expect(idsOf('physics')).toEqual(['j2', 'j1']);
  expect(idsOf('chemistry')).toEqual(['j3', 'j1']);
  expect(cache.one('physics', 'j1')?.item.name).toBe('name of j1');
  expect(cache.one('physics', 'j3')).toBeUndefined();
  // Nobody has listed for them: an empty list would claim that they have none.
  expect(cache.list('biology', query())).toBeUndefined();
});

test('filters and pages like the list itself, newest first', () => {
  cache.remember('physics', [
    ...[1, 2, 3, 4, 5].map((n) => job(`j${n}`)),
    job('j6', { state: 'FAILED', reason: 'exit code 1', owner: 'bob', parent: 'j1' }),
  ]);
  expect(idsOf('physics', { state: 'FAILED' })).toEqual(['j6']);
  expect(idsOf('physics', { owner: 'bob', parent: 'j1' })).toEqual(['j6']);
  expect(idsOf('physics', { name: 'nothing' })).toEqual([]);
  const first = cache.list('physics', query({ limit: 4 }))?.item;
  expect(first?.items.map(({ id }) => id)).toEqual(['j6', 'j5', 'j4', 'j3']);
  const rest = cache.list('physics', query({ limit: 4, cursor: first?.nextCursor ?? '' }))?.item;
  expect(rest).toMatchObject({ items: [{ id: 'j2' }, { id: 'j1' }], nextCursor: null });
});

test('it knows its age, what was asked for, and survives a restart', () => {
  const annotations = { model: 'm', checkpoint: 'c', other: 'kept by the coordinator only' };
  const spec = jobSpec.parse({ command: ['true'], env: { KEY: 'hidden' }, annotations });
  cache.remember('physics', [job('j1', { spec })]);
  cache.close();
  now += 5_000;
  cache = open();
  // A list without specs does not take away what is known.
  cache.remember('physics', [job('j1', { state: 'SUCCEEDED' })]);
  now += 1_000;
  const kept = cache.one('physics', 'j1');
  expect(kept).toMatchObject({ ageMs: 1_000, config: { model: 'm', checkpoint: 'c' } });
  expect(kept?.item).toMatchObject({ state: 'SUCCEEDED' });
  expect(JSON.stringify(kept)).not.toContain('hidden');
  expect(statSync(join(folder, 'cache.db')).mode & 0o777).toBe(0o600);
});

test('it is bounded: what was not seen for longest goes', () => {
  cache.close();
  cache = open({ rows: 10 });
  for (let n = 1; n <= 40; n++) {
    now += 1;
    cache.remember('physics', [job(`j${n}`)]);
    cache.one('physics', 'j1');
  }
  const ids = idsOf('physics') ?? [];
  expect(ids.length).toBeLessThan(20);
  expect(ids.slice(0, 3)).toEqual(['j40', 'j39', 'j38']);
  // And what waits to be written.
  cache.close();
  cache = open({ pending: 3, rows: 100 });
  cache.remember(
    'biology',
    [1, 2, 3, 4, 5].map((n) => job(`j${n}`)),
  );
  expect(idsOf('biology')).toHaveLength(3);
});

const WHO = { token: 't', tenant: 'physics', user: 'ada', scopes: [] } as unknown as Principal;
const away = (): Promise<never> =>
  Promise.reject(new DroverError('UNAVAILABLE', 'The coordinator cannot be reached now'));
function fronted(calls: Partial<Coordinator>, afterMs = 1_000): Coordinator {
  return cachedCoordinator(calls as Coordinator, { cache, clock, afterMs });
}

test('live answers are not marked, and what is known stands in for one that is away', async () => {
  const live = fronted({ listJobs: async () => ({ items: [job('j1')], nextCursor: null }) });
  expect(markOf((await live.listJobs(WHO, query())).items)).toBeUndefined();
  now += 2_000;
  const dead = fronted({ listJobs: away, getJob: away });
  const page = await dead.listJobs(WHO, query());
  expect(page.items).toMatchObject([{ id: 'j1' }]);
  expect(markOf(page.items)).toMatchObject({ ageMs: 2_000 });
  expect(markOf(await dead.getJob(WHO, 'j1'))).toMatchObject({ ageMs: 2_000 });
  await expect(dead.getJob(WHO, 'j2')).rejects.toThrow('cannot be reached');
  // A place in the coordinator's own list means nothing to the cache.
  await expect(dead.listJobs(WHO, query({ cursor: 'of-others' }))).rejects.toThrow('reached');
  // A running job may see less than its tenant.
  const running = { ...WHO, job: 'j9' as JobId };
  await expect(dead.listJobs(running, query())).rejects.toThrow('reached');
});

test('one that is slow is answered for, and refusals are not', async () => {
  cache.remember('physics', [job('j1')]);
  const late = Promise.withResolvers<JobView>();
  const slow = fronted({ getJob: () => late.promise }, 20);
  expect(markOf(await slow.getJob(WHO, 'j1'))).toBeDefined();
  const unknown = slow.getJob(WHO, 'j2');
  late.resolve(job('j2', { name: 'came late' }));
  expect((await unknown).name).toBe('came late');
  const denied = fronted({
    getJob: () => Promise.reject(new DroverError('PERMISSION_DENIED', 'no')),
  });
  await expect(denied.getJob(WHO, 'j1')).rejects.toThrow('no');
  const gone = fronted({ getJob: () => Promise.reject(new DroverError('NOT_FOUND', 'gone')) });
  await expect(gone.getJob(WHO, 'j1')).rejects.toThrow('gone');
  expect(cache.one('physics', 'j1')).toBeUndefined();
});
