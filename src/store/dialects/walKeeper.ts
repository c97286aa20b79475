/**
 * Keeps the WAL short without holding up commits. Another connection, on another thread, copies its
 * pages into the database file while commits go on. The WAL starts over only when every page was
 * copied, which under steady load another connection never achieves: so when it has done its part,
 * the few pages that came since are copied here, between two commits.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite';

interface WalState {
  /** Pages in it, and how many of them are in the database file too. */
  log: number;
  checkpointed: number;
}

/** To be called after each commit. */
export function walKeeper(
  db: DatabaseSync,
  checkpointPages: number,
  checkpointElsewhere: () => Promise<void>,
): () => void {
  const look = db.prepare('PRAGMA wal_checkpoint(NOOP)');
  const copy = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
  let isRunning = false;
  let isNearlyDone = false;

  const copyElsewhere = async (): Promise<void> => {
    isRunning = true;
    try {
      await checkpointElsewhere();
    } catch {
      // The WAL is as good a place as the file. A disk that is full or broken shows at a commit.
    }
    isRunning = false;
    isNearlyDone = true;
  };
  return () => {
    if (isRunning) return;
    const { log, checkpointed } = stateOf(look);
    if (log < checkpointPages || log === checkpointed) return;
    const isRest = isNearlyDone && log - checkpointed < checkpointPages;
    isNearlyDone = false;
    if (isRest) copyRest(copy);
    else void copyElsewhere();
  };
}

function copyRest(copy: StatementSync): void {
  try {
    copy.get();
  } catch {
    // As above: what was committed is on disk, and the next one tries again.
  }
}

function stateOf(statement: StatementSync): WalState {
  return statement.get() as unknown as WalState;
}

/** The other thread's side. It keeps no connection: the last one to close removes the WAL. */
export function createCheckpointer(file: string): { checkpoint(): Promise<void> } {
  return {
    async checkpoint() {
      const db = new DatabaseSync(file);
      try {
        db.exec('PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(PASSIVE)');
      } finally {
        db.close();
      }
    },
  };
}
