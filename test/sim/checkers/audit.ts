/** I16: what people did is on record in a chain without a gap; what they were told of it is so. */
import { CHAIN_BEGIN, chainHash } from '../../../src/model/auditChain.ts';
import { AUDITED, type Event } from '../../../src/model/event.ts';
import { specOf } from '../../../src/store/decode.ts';
import type { EventRow } from '../../../src/store/database.ts';
import type { Commit, Mirror } from './mirror.ts';
import { must } from './violation.ts';

export class AuditChecker {
  readonly #mirror: Mirror;
  readonly #heads = new Map<string, string>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  committed({ events }: Commit): void {
    for (const row of events) {
      const kind = row.kind as Event['kind'];
      // Of a submission of many only the first stands in the chain.
      const must16 = AUDITED.has(kind) && kind !== 'job.submitted';
      must(!must16 || row.hash !== null, 'I16', () => `${kind} ${row.seq} is not in the chain`);
      if (row.hash === null) continue;
      const previous = this.#heads.get(row.tenant) ?? CHAIN_BEGIN;
      const stands = row.hash === chainHash(previous, entryOf(row));
      must(stands, 'I16', () => `${kind} ${row.seq} does not stand on the entry before it`);
      this.#heads.set(row.tenant, row.hash);
    }
  }

  /** Somebody was told that a job has another priority now. */
  moved(id: string, priority: string): void {
    const row = this.#mirror.jobs.get(id);
    const durable = !!row && (row.ended_at_ms !== null || specOf(row).priority === priority);
    must(durable, 'I16', () => `${id} was said to be ${priority}, and is not`);
  }
}

function entryOf(row: EventRow): Parameters<typeof chainHash>[1] {
  const { epoch, seq, job, task, attempt, worker } = row;
  return {
    ...{ epoch, seq, job, task, attempt, worker },
    atMs: row.at_ms,
    kind: row.kind as Event['kind'],
    data: JSON.parse(row.data) as Event['data'],
  };
}
