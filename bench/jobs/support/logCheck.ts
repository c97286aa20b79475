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

  constructor(tasks: number, bytes: number) {
    this.#next = Array.from({ length: tasks }, () => 0);
    this.#bytes = Math.floor(bytes / LINE_BYTES) * LINE_BYTES;
  }

  /** Records of a task must come in order and join without gap or overlap. */
  take(task: number, offset: number, bytes: Buffer): void {
    const due = this.#next[task] ?? 0;
    this.#faults += Math.abs(offset - due);
    const expected = expectedBytes(task, offset, bytes.length);
    if (!expected.equals(bytes)) {
      for (const [i, byte] of bytes.entries()) if (byte !== expected[i]) this.#faults++;
    }
    this.#next[task] = offset + bytes.length;
  }

  /** Bytes that were missing, came twice or were wrong. */
  faults(): number {
    return this.#next.reduce((sum, end) => sum + Math.abs(this.#bytes - end), this.#faults);
  }
}

function expectedBytes(task: number, offset: number, length: number): Buffer {
  const first = Math.floor(offset / LINE_BYTES);
  const last = Math.ceil((offset + length) / LINE_BYTES);
  const buffer = Buffer.allocUnsafe((last - first) * LINE_BYTES);
  for (let line = first; line < last; line++) {
    const text = `${FIRST + task * APART + line}\n`;
    buffer.write(text, (line - first) * LINE_BYTES, 'latin1');
  }
  const skip = offset - first * LINE_BYTES;
  return buffer.subarray(skip, skip + length);
}
