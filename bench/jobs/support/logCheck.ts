/** Output whose every byte follows from task and offset, and the check that it came back whole. */

/** Ten digits and a newline. */
const LINE_BYTES = 11;
const FIRST = 1_000_000_000;
/** So that no two tasks print the same number. */
const APART = 1_000_000;

/** `seq` prints as fast as a pipe takes it, so the writer is never what is measured. */
export function sequenceCommand(bytes: number): string[] {
  const count = Math.floor(bytes / LINE_BYTES);
  const from = `$((${FIRST} + DROVER_ARRAY_INDEX * ${APART}))`;
  return ['sh', '-c', `exec seq ${from} $((${FIRST - 1 + count} + DROVER_ARRAY_INDEX * ${APART}))`];
}

export class LogCheck {
  #next: number[];
  #bytes: number;
  #faults = 0;
  /** Task 0's output: that of others differs in three digits of each line. */
  #first: Buffer;

  constructor(tasks: number, bytes: number) {
    this.#next = Array.from({ length: tasks }, () => 0);
    const lines = Math.floor(bytes / LINE_BYTES);
    if (lines > APART || tasks > 1000) throw new Error('tasks would print the same numbers');
    this.#bytes = lines * LINE_BYTES;
    this.#first = Buffer.allocUnsafe(this.#bytes);
    for (let n = 0; n < lines; n++) this.#first.write(`${FIRST + n}\n`, n * LINE_BYTES, 'latin1');
  }

  /** Records of a task must come in order and join without gap or overlap. */
  take(task: number, offset: number, bytes: Buffer): void {
    const due = this.#next[task] ?? 0;
    this.#faults += Math.abs(offset - due);
    const expected = this.#expected(task, offset, bytes.length);
    if (!expected.equals(bytes)) {
      for (const [i, byte] of bytes.entries()) if (byte !== expected[i]) this.#faults++;
    }
    this.#next[task] = offset + bytes.length;
  }

  #expected(task: number, offset: number, length: number): Buffer {
    const first = Math.floor(offset / LINE_BYTES) * LINE_BYTES;
    const end = Math.ceil((offset + length) / LINE_BYTES) * LINE_BYTES;
    const buffer = Buffer.from(this.#first.subarray(first, end));
    const digits = Buffer.from(String(task).padStart(3, '0'));
    for (let at = 1; at < buffer.length; at += LINE_BYTES) {
      buffer[at] = digits[0]!;
      buffer[at + 1] = digits[1]!;
      buffer[at + 2] = digits[2]!;
    }
    return buffer.subarray(offset - first, offset - first + length);
  }

  /** Bytes that were missing, came twice or were wrong. */
  faults(): number {
    return this.#next.reduce((sum, end) => sum + Math.abs(this.#bytes - end), this.#faults);
  }
}
