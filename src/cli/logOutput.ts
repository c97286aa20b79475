/** Log records to the terminal: byte-exact for one task, whole prefixed lines for several. */
import type { LogRecordView } from '../protocol/jobs.ts';
import type { CliIo } from './io.ts';

export interface LogOutput {
  write(record: LogRecordView): Promise<void>;
  /** Writes what is left of unfinished lines. */
  end(): Promise<void>;
}

/** A line longer than this is shown in pieces rather than kept back. */
const LINE_LIMIT_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

function recordBytes(record: LogRecordView): Buffer {
  if (record.base64 !== undefined) return Buffer.from(record.base64, 'base64');
  return Buffer.from(record.text ?? '', 'utf8');
}

export function exactOutput(io: CliIo): LogOutput {
  return {
    write: (record) => io[record.stream].write(recordBytes(record)),
    async end() {},
  };
}

export function jsonOutput(io: CliIo): LogOutput {
  return {
    write: (record) => io.stdout.write(`${JSON.stringify({ type: 'log', ...record })}\n`),
    async end() {},
  };
}

/** Lines of several tasks mix only at line ends, so each is held until it is whole. */
export function prefixedOutput(io: CliIo): LogOutput {
  const unfinished = new Map<string, { record: LogRecordView; bytes: Buffer }>();
  const writeLines = (record: LogRecordView, lines: Buffer): Promise<void> =>
    io[record.stream].write(prefixLines(`[${record.index}] `, lines));
  return {
    async write(record) {
      const key = `${record.task} ${record.attempt} ${record.stream}`;
      const held = unfinished.get(key)?.bytes ?? Buffer.alloc(0);
      const bytes = Buffer.concat([held, recordBytes(record)]);
      const whole = bytes.lastIndexOf(NEWLINE) + 1;
      if (whole > 0) await writeLines(record, bytes.subarray(0, whole));
      const rest = bytes.subarray(whole);
      if (rest.length > LINE_LIMIT_BYTES) {
        await writeLines(record, Buffer.concat([rest, Buffer.of(NEWLINE)]));
        unfinished.delete(key);
      } else if (rest.length > 0) {
        unfinished.set(key, { record, bytes: Buffer.from(rest) });
      } else {
        unfinished.delete(key);
      }
    },
    async end() {
      for (const { record, bytes } of unfinished.values()) {
        await writeLines(record, Buffer.concat([bytes, Buffer.of(NEWLINE)]));
      }
      unfinished.clear();
    },
  };
}

function prefixLines(prefix: string, lines: Buffer): Buffer {
  const start = Buffer.from(prefix);
  const parts: Buffer[] = [];
  for (let from = 0; from < lines.length;) {
    const end = lines.indexOf(NEWLINE, from) + 1;
    parts.push(start, lines.subarray(from, end));
    from = end;
  }
  return Buffer.concat(parts);
}
