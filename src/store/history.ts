/** History: what ended lives only here, read on a connection of its own. */
import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { History, JobFilter, SystemHistory, TenantHistory } from './contract.ts';
import type { Database } from './database.ts';
import { manifests, specsWithBlobs } from './namedBlobs.ts';

export function createHistory(db: Kysely<Database>, close: () => Promise<void>): History {
  return {
    forTenant: (tenant) => tenantHistory(db, tenant),
    system: () => systemHistory(db),
    close,
  };
}

function tenantHistory(db: Kysely<Database>, tenant: string): TenantHistory {
  return {
    async job(id) {
      const row = await db
        .selectFrom('jobs')
        .selectAll()
        .where('id', '=', id)
        .where('tenant', '=', tenant)
        .executeTakeFirst();
      return row ?? null;
    },
    jobs: (filter) => listJobs(db, tenant, filter),
    tasks: (job, afterIndex, limit) =>
      db
        .selectFrom('tasks')
        .selectAll()
        .where('job', '=', job)
        .where('tenant', '=', tenant)
        .where('task_index', '>', afterIndex)
        .orderBy('task_index')
        .limit(limit)
        .execute(),
    attempts: (job, [index, n], limit) =>
      db
        .selectFrom('attempts')
        .selectAll()
        .where('job', '=', job)
        .where('tenant', '=', tenant)
        .where(sql<boolean>`(task_index, n) > (${index}, ${n})`)
        .orderBy('task_index')
        .orderBy('n')
        .limit(limit)
        .execute(),
    checkpoints: (job, [index, n], limit) =>
      db
        .selectFrom('checkpoints')
        .selectAll()
        .where('job', '=', job)
        .where('tenant', '=', tenant)
        .where(sql<boolean>`(task_index, n) > (${index}, ${n})`)
        .orderBy('task_index')
        .orderBy('n')
        .limit(limit)
        .execute(),
    specsWithBlobs: (afterId, limit) => specsWithBlobs(db, tenant, afterId, limit),
    manifests: (of, after, limit) => manifests(db, tenant, of, after, limit),
    audited: ([epoch, seq], limit) =>
      db
        .selectFrom('events')
        .selectAll()
        .where('tenant', '=', tenant)
        .where('hash', 'is not', null)
        .where(sql<boolean>`(epoch, seq) < (${epoch}, ${seq})`)
        .orderBy('epoch', 'desc')
        .orderBy('seq', 'desc')
        .limit(limit)
        .execute(),
    events: (job, [epoch, seq], limit) =>
      db
        .selectFrom('events')
        .selectAll()
        .where('job', '=', job)
        .where('tenant', '=', tenant)
        .where(sql<boolean>`(epoch, seq) > (${epoch}, ${seq})`)
        .orderBy('epoch')
        .orderBy('seq')
        .limit(limit)
        .execute(),
  };
}

function listJobs(db: Kysely<Database>, tenant: string, filter: JobFilter) {
  let query = db.selectFrom('jobs').selectAll().where('tenant', '=', tenant);
  if (filter.before !== undefined) query = query.where('id', '<', filter.before);
  if (filter.name !== undefined) {
    query = query.where('name', '=', filter.name);
  }
  if (filter.owner !== undefined) query = query.where('owner', '=', filter.owner);
  if (filter.parent !== undefined) query = query.where('parent', '=', filter.parent);
  const { root } = filter;
  if (root !== undefined) {
    query = query.where((or) => or.or([or('root', '=', root), or('id', '=', root)]));
  }
  if (filter.endState !== undefined) {
    query = query.where('end_state', '=', filter.endState);
    // Spelled out so that both planners see that the partial index covers it.
    if (filter.endState !== 'SUCCEEDED') {
      query = query.where(sql<boolean>`end_state IN ('FAILED', 'CANCELLED', 'UNSCHEDULABLE')`);
    }
  }
  return query.orderBy('id', 'desc').limit(filter.limit).execute();
}

function systemHistory(db: Kysely<Database>): SystemHistory {
  return {
    async attempt(job, index, n) {
      const row = await db
        .selectFrom('attempts')
        .selectAll()
        .where('job', '=', job)
        .where('task_index', '=', index)
        .where('n', '=', n)
        .executeTakeFirst();
      return row ?? null;
    },
    workers: (ids) => db.selectFrom('workers').selectAll().where('id', 'in', ids).execute(),
    instances(pool, before, limit) {
      let query = db.selectFrom('instances').selectAll();
      if (pool !== '') query = query.where('pool', '=', pool);
      if (before !== '') query = query.where('id', '<', before);
      return query.orderBy('id', 'desc').limit(limit).execute();
    },
    usageDays(first, last, tenant) {
      const days = db
        .selectFrom('usage_days')
        .selectAll()
        .where('day', '>=', first)
        .where('day', '<=', last);
      return (tenant === null ? days : days.where('tenant', '=', tenant)).execute();
    },
    async ping() {
      await sql`SELECT 1`.execute(db);
    },
  };
}
