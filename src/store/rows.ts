/** Changed entities of one kind as the flat lists of values that a batch carries. */
import type { RowOperation } from '../state/changes.ts';
import type { TableWrites, Value } from './contract.ts';

/** Appends a row's values of one kind to a flat list. */
type Put<Row> = (to: Value[], row: Row) => void;

export function split<Row>(
  rows: Map<Row, RowOperation>,
  key: Put<Row>,
  fixed: Put<Row>,
  mutable: Put<Row>,
  isFresh: (row: Row) => boolean = () => false,
): TableWrites {
  const writes: TableWrites = { fresh: [], inserts: [], updates: [], deletes: [] };
  for (const [row, operation] of rows) {
    if (operation === 'insert' && isFresh(row)) {
      key(writes.fresh, row);
      fixed(writes.fresh, row);
    } else if (operation === 'insert') {
      key(writes.inserts, row);
      fixed(writes.inserts, row);
      mutable(writes.inserts, row);
    } else if (operation === 'update') {
      mutable(writes.updates, row);
      key(writes.updates, row);
    } else key(writes.deletes, row);
  }
  return writes;
}

/** For tables without a column of this kind. */
export function nothing(): void {
  // All their columns are of the other kinds.
}
