/**
 * Input on its way to a command. It waits here, within the window that clients keep to, so that
 * signals and the client's leaving are heard while the command does not read.
 */
import { DroverError } from '../../lib/errors.ts';
import { ByteQueue } from '../../protocol/tunnel/byteQueue.ts';
import { encodeExecControl, EXEC_INPUT_BYTES } from '../../protocol/tunnel/exec.ts';
import type { TunnelStream } from '../../protocol/tunnel/stream.ts';
import type { ExecProcess } from './execProcess.ts';

export class InputQueue {
  readonly #waiting = new ByteQueue();
  /** Waiting here or being written. */
  #heldBytes = 0;
  #isEnded = false;
  isClosed = false;
  #wake: (() => void) | undefined;

  push(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#heldBytes += bytes.length;
    if (this.#heldBytes > EXEC_INPUT_BYTES) {
      throw new DroverError(
        'TOO_MANY',
        `more than ${EXEC_INPUT_BYTES} bytes of input were sent beyond what was taken`,
      );
    }
    if (this.#isEnded) return;
    this.#waiting.push(bytes);
    this.#wake?.();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake?.();
  }

  /** Undefined at the end. */
  async next(): Promise<Uint8Array | undefined> {
    while (this.#waiting.byteLength === 0) {
      if (this.#isEnded) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.#waiting.shift();
  }

  taken(bytes: number): void {
    this.#heldBytes -= bytes;
  }

  /** The command has exited: nothing more is taken, and nobody is told so. */
  close(): void {
    this.isClosed = true;
  }
}

/** Writes what comes and tells the client how much was taken. Resolves at the end of input. */
export async function feedInput(
  input: InputQueue,
  command: ExecProcess,
  stream: TunnelStream,
): Promise<void> {
  for (;;) {
    const bytes = await input.next();
    if (bytes === undefined) return command.endInput();
    await command.write(bytes);
    if (input.isClosed) return;
    input.taken(bytes.length);
    await stream.write(encodeExecControl({ type: 'taken', bytes: bytes.length }));
  }
}
