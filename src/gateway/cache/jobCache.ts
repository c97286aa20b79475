/**
 * Jobs as this gateway last saw them, in a small file of its own: for lists while the coordinator
 * is slow or away. It is never the truth, can be deleted at any time, and forgets what it has not
 * seen for longest. The only SQL outside store/.
 */
import { chmodSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Page } from '../../protocol/coordinator.ts';
import { jobView, type JobView, type ListJobsQuery } from '../../protocol/jobs.ts';
import { TABLE, UPSERT, FORGET, ONE, KNOWN, LIST, PRUNE } from './statements.ts';

export const CACHE_LIMITS = {
  /** Jobs that are kept, of all tenants together. */
  rows: 50_000,
  /** Seen and not yet written; more are dropped, since the next list brings them again. */
  pending: 5_000,
  /** Written in one go: the gateway does nothing else meanwhile. */
  batch: 200,
  /** What was seen is written so much later, so that lists which repeat cost one write. */
  delayMs: 100,
};

/** What a training job was asked for, as its annotations have it. */
const CONFIG_BLOCKS = ['model', 'data', 'training', 'resources', 'checkpoint'] as const;
export type JobConfig = Partial<Record<(typeof CONFIG_BLOCKS)[number], string>>;

/** What is known, and how old it is at most. */
export interface Kept<Item> {
  item: Item;
  ageMs: number;
  /** Of one job. */
  config?: JobConfig;
}

export interface JobCacheOptions {
  file: string;
  clock: Clock;
  log: Log;
  limits?: Partial<typeof CACHE_LIMITS>;
}

type Row = Record<string, SQLInputValue>;

/** A job as it was seen; made into a row when it is written, which most are not. */
interface Seen {
  tenant: string;
  job: JobView;
  annotations: Record<string, string>;
  atMs: number;
}

export class JobCache {
  readonly #options: JobCacheOptions;
  readonly #limits: typeof CACHE_LIMITS;
  readonly #database: DatabaseSync;
  readonly #statements: Record<
    'upsert' | 'forget' | 'one' | 'known' | 'list' | 'prune',
    StatementSync
  >;
  #pending = new Map<string, Seen>();
  #timer: Timer | undefined;
  #written = 0;

  constructor(options: JobCacheOptions) {
    this.#options = options;
    this.#limits = { ...CACHE_LIMITS, ...options.limits };
    this.#database = new DatabaseSync(options.file);
    // It holds what every tenant asked for.
    chmodSync(options.file, 0o600);
    this.#database.exec(TABLE);
    const prepare = (sql: string): StatementSync => this.#database.prepare(sql);
    this.#statements = {
      upsert: prepare(UPSERT),
      forget: prepare(FORGET),
      one: prepare(ONE),
      known: prepare(KNOWN),
      list: prepare(LIST),
      prune: prepare(PRUNE),
    };
  }

  /** Costs its caller nothing but this call; written later, or dropped. */
  remember(tenant: string, jobs: readonly JobView[]): void {
    for (const job of jobs) {
      if (this.#pending.size >= this.#limits.pending) break;
      const key = `${tenant}\n${job.id}`;
      // Lists come without what was asked for; what is known of it stays.
      const annotations = job.spec?.annotations ?? this.#pending.get(key)?.annotations ?? {};
      this.#pending.set(key, { tenant, job, annotations, atMs: this.#options.clock.now() });
    }
    this.#timer ??= this.#options.clock.setTimer(this.#limits.delayMs, () => this.#write());
  }

  forget(tenant: string, id: string): void {
    this.#pending.delete(`${tenant}\n${id}`);
    this.#attempt(() => this.#statements.forget.run({ tenant, id }));
  }

  one(tenant: string, id: string): Kept<JobView> | undefined {
    return this.#attempt(() => {
      this.#writeAll();
      const row = this.#statements.one.get({ tenant, id });
      const job = row && jobOf(row);
      if (!row || !job) return undefined;
      const config: JobConfig = {};
      for (const block of CONFIG_BLOCKS) {
        const text = row[block];
        if (typeof text === 'string') config[block] = text;
      }
      return { item: job, ageMs: this.#ageOf([row]), config };
    });
  }

  /** Undefined where nothing of the tenant is known: then an empty list would be a lie. */
  list(tenant: string, query: ListJobsQuery): Kept<Page<JobView>> | undefined {
    return this.#attempt(() => {
      this.#writeAll();
      if (!this.#statements.known.get({ tenant })) return undefined;
      const [beforeMs, beforeId] = placeOf(query.cursor);
      const { state = null, name = null, owner = null, parent = null, limit } = query;
      const rows = this.#statements.list.all({
        ...{ tenant, state, name, owner, parent, beforeMs, beforeId },
        limit: limit + 1,
      });
      const shown = rows.slice(0, limit);
      const items = shown.flatMap((row) => jobOf(row) ?? []);
      const last = items.at(-1);
      const more = rows.length > limit && last !== undefined;
      const nextCursor = more ? `${CURSOR}${last.createdAtMs}:${last.id}` : null;
      return { item: { items, nextCursor }, ageMs: this.#ageOf(shown) };
    });
  }

  close(): void {
    this.#timer?.cancel();
    this.#attempt(() => this.#writeAll());
    this.#database.close();
  }

  #write(): void {
    this.#timer = undefined;
    this.#attempt(() => this.#writeBatch());
    if (this.#pending.size === 0) return;
    this.#options.clock.soon(() => this.#write());
  }

  #writeAll(): void {
    while (this.#pending.size > 0) this.#writeBatch();
  }

  #writeBatch(): void {
    const batch = [...this.#pending].slice(0, this.#limits.batch);
    // First: what cannot be written would be tried for ever.
    for (const [key] of batch) this.#pending.delete(key);
    this.#database.exec('begin');
    try {
      for (const [, seen] of batch) this.#statements.upsert.run(rowOf(seen));
      this.#written += batch.length;
      const { rows } = this.#limits;
      if (this.#written >= Math.min(1_000, rows)) {
        this.#statements.prune.run({ rows });
        this.#written = 0;
      }
    } finally {
      this.#database.exec('commit');
    }
  }

  #ageOf(rows: readonly Record<string, unknown>[]): number {
    const now = this.#options.clock.now();
    return rows.reduce((age, row) => Math.max(age, now - Number(row['seenAtMs'])), 0);
  }

  /** A cache that fails is none: what it was asked goes unanswered. */
  #attempt<Result>(work: () => Result): Result | undefined {
    try {
      return work();
    } catch (error) {
      const { file, log } = this.#options;
      log.warn({ file, error: String(error) }, 'the cache of jobs cannot be used');
      return undefined;
    }
  }
}

function rowOf({ tenant, job, annotations, atMs }: Seen): Row {
  const { spec: _, ...view } = job;
  const isWrong = view.state === 'FAILED' || view.state === 'UNSCHEDULABLE';
  return {
    tenant,
    id: view.id,
    status: view.state,
    priority: view.priority,
    name: view.name,
    owner: view.owner,
    parent: view.parent,
    ...Object.fromEntries(CONFIG_BLOCKS.map((block) => [block, annotations[block] ?? null])),
    error: isWrong ? view.reason : null,
    createdAtMs: view.createdAtMs,
    startedAtMs: view.startedAtMs,
    endedAtMs: view.endedAtMs,
    seenAtMs: atMs,
    view: JSON.stringify(view),
  };
}

const CURSOR = 'cache:';

/** Whether a list was begun from the cache, and goes on from there only. */
export function isCacheCursor(cursor: string | undefined): boolean {
  return cursor?.startsWith(CURSOR) ?? false;
}

function placeOf(cursor: string | undefined): [number, string] {
  const match = /^cache:(\d{1,15}):(.*)$/.exec(cursor ?? '');
  return match ? [Number(match[1]), match[2] ?? ''] : [Number.MAX_SAFE_INTEGER, ''];
}

/** Undefined for a row that an older version has written. */
function jobOf(row: Record<string, unknown>): JobView | undefined {
  return jobView.safeParse(JSON.parse(String(row['view']))).data;
}
