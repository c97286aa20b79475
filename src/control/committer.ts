/**
 * Makes batches of what was applied and commits them one after another. Everything that leaves the
 * process first waits for `durable()`. A commit that fails leaves the truth unknown: the process
 * ends.
 */
import type { Clock } from '../lib/clock.ts';
import type { Changes } from '../state/changes.ts';
import type { State } from '../state/state.ts';
import type { WriteBatch, Writer } from '../store/contract.ts';
import { encodeBatch } from '../store/encode.ts';
import { rowWidth, TABLE_NAMES } from '../store/tables.ts';

export interface Committer {
  /** Resolves when everything applied so far is on disk; at once when it already is. */
  durable(): Promise<void>;
  /** To be called after mutations were applied. */
  changed(): void;
  batches(): number;
  rows(): number;
}

export interface CommitterOptions {
  state: State;
  writer: Writer;
  clock: Clock;
  /** After each commit, with what it wrote: wake who waits for news. */
  onCommit: (changes: Changes) => void;
  /** Never returns in production: the process ends and the rebuild decides. */
  onFatal: (error: unknown) => void;
}

export function createCommitter(options: CommitterOptions): Committer {
  const { state, writer, clock, onCommit, onFatal } = options;
  let current: Promise<void> | null = null;
  let next: PromiseWithResolvers<void> | null = null;
  let scheduled = false;
  let dead = false;
  let batches = 0;
  let rows = 0;

  const flush = async (): Promise<void> => {
    scheduled = false;
    if (current || dead || state.changes.empty) return;
    const done = next ?? Promise.withResolvers<void>();
    next = null;
    const changes = state.takeChanges();
    const batch = encodeBatch(changes, state.epoch, state.seq);
    current = done.promise;
    try {
      await writer.commit(batch);
    } catch (error) {
      // Nobody is answered: what was applied may or may not be on disk.
      dead = true;
      onFatal(error);
      return;
    }
    batches++;
    rows += countRows(batch.tables);
    current = null;
    state.evict(changes);
    done.resolve();
    onCommit(changes);
    changed();
  };

  const changed = (): void => {
    if (scheduled || current || dead || state.changes.empty) return;
    scheduled = true;
    clock.soon(() => void flush());
  };

  return {
    changed,
    durable() {
      if (!state.changes.empty || dead) {
        next ??= Promise.withResolvers<void>();
        changed();
        return next.promise;
      }
      return current ?? Promise.resolve();
    },
    batches: () => batches,
    rows: () => rows,
  };
}

function countRows(tables: WriteBatch['tables']): number {
  let count = 0;
  for (const name of TABLE_NAMES) {
    const writes = tables[name];
    if (!writes) continue;
    count += writes.fresh.length / rowWidth(name, 'fresh');
    count += writes.inserts.length / rowWidth(name, 'insert');
    count += writes.deletes.length / rowWidth(name, 'delete');
    if (writes.updates.length > 0) count += writes.updates.length / rowWidth(name, 'update');
  }
  return count;
}
