/** Rows that keep blobs: read through when what nothing names is collected. */
import type { Kysely } from 'kysely';
import type { Database } from './database.ts';

export function specsWithBlobs(
  db: Kysely<Database>,
  tenant: string,
  afterId: string,
  limit: number,
) {
  return (
    db
      .selectFrom('jobs')
      .select(['id', 'spec'])
      .where('tenant', '=', tenant)
      .where('id', '>', afterId)
      // Too much is found where a command says so; never too little.
      .where((or) => or.or([or('spec', 'like', '%"code"%'), or('spec', 'like', '%"inputs"%')]))
      .orderBy('id')
      .limit(limit)
      .execute()
  );
}

export async function manifests(
  db: Kysely<Database>,
  tenant: string,
  of: 'results' | 'checkpoints',
  after: string,
  limit: number,
): Promise<string[]> {
  if (of === 'checkpoints') {
    const query = db.selectFrom('checkpoints').select('manifest as hash').distinct();
    const mine = query.where('tenant', '=', tenant).where('manifest', '>', after);
    return (await mine.orderBy('hash').limit(limit).execute()).map(({ hash }) => hash);
  }
  const query = db.selectFrom('attempts').select('result as hash').distinct();
  const mine = query.where('tenant', '=', tenant).where('result', '>', after);
  const rows = await mine.orderBy('hash').limit(limit).execute();
  return rows.flatMap(({ hash }) => hash ?? []);
}
