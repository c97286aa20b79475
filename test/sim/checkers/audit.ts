/** I16: what people did is on record in a chain without a gap; what they were told of it is so. */
import { CHAIN_BEGIN, chainHash } from '../../../src/model/auditChain.ts';
import { AUDITED, type Event } from '../../../src/model/event.ts';
import { specOf } from '../../../src/store/decode.ts';
import type { EventRow } from '../../../src/store/database.ts';
import type { Commit } from './mirror.ts';
import { must } from './violation.ts';

export class AuditChecker {
  readonly #heads = new Map<string, string>();
  /** Every priority a job ever had in the store. */
  readonly #priorities = new Map<string, Set<string>>();

  committed({ events, jobs }: Commit): void {
    const moved = new Map<string, string>();
    for (const row of events) {
      const kind = row.kind as Event['kind'];
      // Of a submission of many only the first stands in the chain.
      const must16 = AUDITED.has(kind) && kind !== 'job.submitted';
      must(!must16 || row.hash !== null, 'I16', () => `${kind} ${row.seq} is not in the chain`);
      const { to } = JSON.parse(row.data) as Event['data'];
      if (kind === 'job.priority') {
        moved.set(row.job ?? '', String(to));
        this.#has(row.job ?? '', String(to));
      }
      if (row.hash === null) continue;
      const previous = this.#heads.get(row.tenant) ?? CHAIN_BEGIN;
      const stands = row.hash === chainHash(previous, entryOf(row));
      must(stands, 'I16', () => `${kind} ${row.seq} does not stand on the entry before it`);
      this.#heads.set(row.tenant, row.hash);
    }
    for (const { before, row } of jobs) {
      const { priority } = specOf(row);
      if (!before) this.#has(row.id, priority);
      const to = moved.get(row.id) ?? priority;
      must(to === priority, 'I16', () => `${row.id} was moved to ${to}, its row says ${priority}`);
    }
  }

  #has(job: string, priority: string): void {
    const had = this.#priorities.get(job) ?? new Set<string>();
    this.#priorities.set(job, had.add(priority));
  }

  /** Somebody was told that a job has another priority now. */
  moved(id: string, priority: string): void {
    // Somebody else may have changed it again since.
    const told = this.#priorities.get(id)?.has(priority) ?? false;
    must(told, 'I16', () => `${id} was said to be ${priority}, and is not`);
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
