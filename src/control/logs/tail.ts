/**
 * Finds the last N lines, walking backwards. A line counts where it ends, in the order in which
 * lines ended; its beginning may lie far before, between records of other streams that are not
 * asked for. So of every record a suffix is taken, possibly all or nothing of it.
 */

const NEWLINE = 0x0a;

export interface TailRecord {
  /** Attempt and stream: lines never go from one into another. */
  stream: string;
  lineStart: boolean;
  payload: Buffer;
}

export interface TailWalk {
  /** From the last record to the first: where the wanted part of it begins, or undefined. */
  take(record: TailRecord): number | undefined;
  /** Nothing before this can be wanted. */
  readonly done: boolean;
}

export function walkTail(lines: number): TailWalk {
  let left = lines;
  /** Streams whose later record continues a line begun before it: is that line wanted? */
  const continued = new Map<string, boolean>();
  let wantedContinued = 0;

  const endLine = (): boolean => {
    if (left === 0) return false;
    left--;
    return true;
  };
  const remember = (record: TailRecord, firstLineWanted: boolean): void => {
    if (continued.get(record.stream) === true) wantedContinued--;
    if (record.lineStart) continued.delete(record.stream);
    else {
      continued.set(record.stream, firstLineWanted);
      if (firstLineWanted) wantedContinued++;
    }
  };

  return {
    take(record) {
      const { payload } = record;
      let start = payload.length;
      let newline = payload.lastIndexOf(NEWLINE);
      let wanted = false;
      // What follows the last newline is of a line that goes on later, or ends unfinished here.
      if (newline < payload.length - 1) {
        wanted = continued.get(record.stream) ?? endLine();
        if (wanted) start = newline + 1;
      }
      while (newline !== -1) {
        wanted = endLine();
        if (!wanted) break;
        newline = newline === 0 ? -1 : payload.lastIndexOf(NEWLINE, newline - 1);
        start = newline + 1;
      }
      remember(record, wanted);
      return start < payload.length ? start : undefined;
    },
    get done() {
      return left === 0 && wantedContinued === 0;
    },
  };
}
