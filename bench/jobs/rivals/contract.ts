/** What is asked of every rival, and where each is found. They live in bench/node_modules only. */
import type { System } from '../support/bench.ts';

export interface Rival {
  /** One durable submit, resolved when the rival says it is accepted. */
  addOne(n: number): Promise<void>;
  /** One call that submits this many. */
  addMany(count: number): Promise<void>;
  /** Jobs in its store that wait, to check that what it accepted is there. */
  waiting(): Promise<number>;
  /** Starts 8 workers with no-op handlers; resolves when `count` jobs are stored as completed. */
  work(count: number): Promise<void>;
  close(): Promise<void>;
}

export type OpenRival = (directory: string) => Promise<Rival>;

export interface RivalEntry extends System {
  open: OpenRival;
  /** What explains its rate of single submits; ends in a semicolon and a blank. */
  addNote?: string;
  /** How it was set up for execution, and what it keeps. */
  workNote: string;
}

export const WORKERS = 8;

const GROUPED = 'PostgreSQL, synchronous_commit=on';

export const RIVALS: RivalEntry[] = [
  {
    system: 'bullmq-always',
    durability: 'Redis AOF, appendfsync always',
    open: (directory) => load('bullmq.ts', 'openAlways', directory),
    workNote: '8 workers of concurrency 32, completed jobs kept',
  },
  {
    system: 'bullmq-everysec',
    durability: 'Redis AOF, appendfsync everysec: up to a second is lost',
    open: (directory) => load('bullmq.ts', 'openEverysec', directory),
    workNote: '8 workers of concurrency 32, completed jobs kept',
  },
  {
    system: 'graphile-worker',
    durability: GROUPED,
    open: (directory) => load('graphile.ts', 'openGraphile', directory),
    addNote: 'each add notifies, and PostgreSQL commits those one at a time; ',
    workNote: 'local queue of 500, completions batched; completed jobs deleted, no history',
  },
  {
    system: 'pg-boss',
    durability: GROUPED,
    open: (directory) => load('pgboss.ts', 'openPgBoss', directory),
    workNote: '8 workers, batches of 100 in burst; completed jobs kept',
  },
];

/**
 * The name is computed so that the root's type check does not follow it into packages that only
 * `make bench-jobs` installs; `tsc -p bench` checks them.
 */
async function load(file: string, name: string, directory: string): Promise<Rival> {
  const url = new URL(file, import.meta.url).href;
  const module = (await import(url)) as Record<string, OpenRival>;
  const open = module[name];
  if (!open) throw new Error(`${file} does not export ${name}`);
  return open(directory);
}
