/** For whom jobs get tokens of other services, as rows and back. */
import type { JobDownstream } from '../model/downstream.ts';
import type { JobId } from '../model/ids.ts';
import type { Changes } from '../state/changes.ts';
import type { Value, WriteBatch } from './contract.ts';
import { split } from './rows.ts';

export interface DownstreamRow {
  job: string;
  tenant: string;
  issuer: string;
  subject: string;
  audiences: string;
  sealed: string | null;
}

export function encodeDownstream(changes: Changes, tables: WriteBatch['tables']): void {
  if (changes.downstream.size === 0) return;
  tables.job_downstream = split(changes.downstream, key, fixed, (to, one) => to.push(one.sealed));
}

function key(to: Value[], { job }: JobDownstream): void {
  to.push(job);
}

function fixed(to: Value[], { tenant, issuer, subject, audiences }: JobDownstream): void {
  to.push(tenant, issuer, subject, JSON.stringify(audiences));
}

export function decodeDownstream(row: DownstreamRow): JobDownstream {
  return {
    job: row.job as JobId,
    tenant: row.tenant,
    issuer: row.issuer,
    subject: row.subject,
    audiences: JSON.parse(row.audiences) as string[],
    sealed: row.sealed,
  };
}
