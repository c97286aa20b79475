/** Notices as rows and back. */
import type { JobId } from '../model/ids.ts';
import type { QueuedNotice } from '../model/notice.ts';
import type { Changes } from '../state/changes.ts';
import type { Value, WriteBatch } from './contract.ts';
import type { NoticeRow } from './database.ts';
import { split } from './rows.ts';

export function encodeNotices(changes: Changes, tables: WriteBatch['tables']): void {
  if (changes.notices.size === 0) return;
  tables.notices = split(changes.notices, noticeKey, noticeFixed, noticeMutable);
}

function noticeKey(to: Value[], { id }: QueuedNotice): void {
  to.push(id);
}

function noticeFixed(to: Value[], notice: QueuedNotice): void {
  const { tenant, channel, kind, job, facts, createdAtMs } = notice;
  to.push(tenant, channel, kind, job, JSON.stringify(facts), createdAtMs);
}

function noticeMutable(to: Value[], { tries, nextTryAtMs, lastError }: QueuedNotice): void {
  to.push(tries, nextTryAtMs, lastError);
}

export function decodeNotice(row: NoticeRow): QueuedNotice {
  return {
    id: row.id,
    tenant: row.tenant,
    channel: row.channel,
    kind: row.kind as QueuedNotice['kind'],
    job: row.job as JobId | null,
    facts: JSON.parse(row.facts) as QueuedNotice['facts'],
    createdAtMs: row.created_at_ms,
    tries: row.tries,
    nextTryAtMs: row.next_try_at_ms,
    lastError: row.last_error,
  };
}
