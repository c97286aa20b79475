/** Reads everything that has not ended, to start from. */
import type { Kysely } from 'kysely';
import type { ClusterId, JobId } from '../model/ids.ts';
import type { Snapshot } from '../state/live.ts';
import { IDEMPOTENCY_MS } from '../state/submit.ts';
import { decodeAttempt, decodeCheckpoint, decodeClaim, decodeJob, decodeTask } from './decode.ts';
import {
  decodeAccount,
  decodeBudget,
  decodeDataSet,
  decodeToken,
  decodeUsageDay,
} from './decode.ts';
import { decodeDownstream } from './downstreamRows.ts';
import { decodeHost, decodeInstance, decodeSpending, decodeWorker } from './machineRows.ts';
import { decodeNotice } from './noticeRows.ts';
import { decodeTenant, decodeUser } from './peopleRows.ts';
import type { ControllerRow, Database } from './database.ts';

export async function readSnapshot(
  db: Kysely<Database>,
  controller: ControllerRow,
  nowMs: number,
): Promise<Snapshot> {
  const jobs = await db.selectFrom('jobs').selectAll().where('ended_at_ms', 'is', null).execute();
  const live = db.selectFrom('jobs').select('id').where('ended_at_ms', 'is', null);
  const tasks = await db.selectFrom('tasks').selectAll().where('job', 'in', live).execute();
  const attempts = await db
    .selectFrom('attempts')
    .selectAll()
    .where('job', 'in', live)
    .where('state', '<>', 'ENDED')
    .execute();
  const checkpoints = await db
    .selectFrom('checkpoints')
    .selectAll()
    .where('job', 'in', live)
    .orderBy('n')
    .execute();
  const claims = await db.selectFrom('claims').selectAll().execute();
  const workers = await db
    .selectFrom('workers')
    .selectAll()
    .where('ended_at_ms', 'is', null)
    .execute();
  const instances = await db
    .selectFrom('instances')
    .selectAll()
    .where('ended_at_ms', 'is', null)
    .execute();
  const tokens = await db.selectFrom('tokens').selectAll().execute();
  const budgets = await db.selectFrom('budgets').selectAll().execute();
  const dataSets = await db.selectFrom('data_sets').selectAll().execute();
  const downstream = await db.selectFrom('job_downstream').selectAll().execute();
  const accounts = await db.selectFrom('accounts').selectAll().execute();
  const notices = await db.selectFrom('notices').selectAll().orderBy('id').execute();
  const newest = db.selectFrom('usage_days').select((row) => row.fn.max('day').as('day'));
  const usageDays = await db
    .selectFrom('usage_days')
    .selectAll()
    .where('day', '=', newest)
    .execute();
  return {
    clusterId: controller.cluster_id as ClusterId,
    epoch: controller.epoch,
    seq: controller.seq,
    jobs: jobs.map(decodeJob),
    tasks: tasks.map(decodeTask),
    attempts: attempts.map(decodeAttempt),
    checkpoints: checkpoints.map(decodeCheckpoint),
    claims: claims.map(decodeClaim),
    workers: workers.map(decodeWorker),
    instances: instances.map(decodeInstance),
    hosts: (await db.selectFrom('hosts').selectAll().execute()).map(decodeHost),
    spending: (await db.selectFrom('pool_spending').selectAll().execute()).map(decodeSpending),
    tokens: tokens.map(decodeToken),
    budgets: budgets.map(decodeBudget),
    dataSets: dataSets.map(decodeDataSet),
    downstream: downstream.map(decodeDownstream),
    accounts: accounts.map(decodeAccount),
    usageDays: usageDays.map(decodeUsageDay),
    notices: notices.map(decodeNotice),
    tenants: (await db.selectFrom('tenants').selectAll().execute()).map(decodeTenant),
    users: (await db.selectFrom('users').selectAll().execute()).map(decodeUser),
    auditHeads: await db.selectFrom('audit_heads').selectAll().execute(),
    idempotency: await readKeys(db, nowMs),
  };
}

async function readKeys(db: Kysely<Database>, nowMs: number): Promise<Snapshot['idempotency']> {
  const rows = await db
    .selectFrom('submissions')
    .selectAll()
    .where('created_at_ms', '>', nowMs - IDEMPOTENCY_MS)
    .orderBy('created_at_ms')
    .orderBy('first_job')
    .execute();
  return rows.map((row) => ({
    tenant: row.tenant,
    key: row.idempotency_key,
    entry: {
      bodyHash: row.body_hash,
      ids: JSON.parse(row.jobs) as JobId[],
      createdAtMs: row.created_at_ms,
    },
  }));
}
