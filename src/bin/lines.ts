/** Bytes in, whole lines out. */
import { StringDecoder } from 'node:string_decoder';

/** A longer line is cut: it is one that nobody should read on a terminal. */
const LINE_LIMIT = 64 * 1024;

export function createLineReader(onLine: (line: string) => void): { push(bytes: Buffer): void } {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  return {
    push(bytes) {
      const lines = (rest + decoder.write(bytes)).split('\n');
      rest = (lines.pop() ?? '').slice(0, LINE_LIMIT);
      for (const line of lines) onLine(line);
    },
  };
}
