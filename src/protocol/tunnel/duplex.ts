/** A tunnel stream as Node's own kind of stream, and two of those joined. */
import { Duplex } from 'node:stream';
import { DroverError } from '../../lib/errors.ts';
import type { TunnelStream } from './stream.ts';

/** Each way ends by itself; destroying it resets the stream. */
export function streamDuplex(stream: TunnelStream): Duplex {
  const reader = stream[Symbol.asyncIterator]();
  return new Duplex({
    allowHalfOpen: true,
    read() {
      reader.next().then(
        ({ done, value }) => this.push(done ? null : value),
        (error: Error) => this.destroy(error),
      );
    },
    write(bytes: Uint8Array, _encoding, done) {
      void settle(stream.write(bytes), done);
    },
    final(done) {
      stream.end();
      done();
    },
    destroy(error, done) {
      // With both ways ended a reset would only overtake the last bytes.
      const isOver = error === null && this.writableFinished && this.readableEnded;
      const code = error instanceof DroverError ? error.code : 'UNAVAILABLE';
      if (!isOver) stream.reset(code, error?.message ?? 'the connection was closed');
      done(error);
    },
  });
}

async function settle(act: Promise<void>, done: (error?: Error) => void): Promise<void> {
  const failure = await act.then(
    () => undefined,
    (error: Error) => error,
  );
  done(failure);
}

/**
 * Bytes, ends and failures of one become those of the other. Resolves when both are closed, with
 * what broke them, if anything did.
 */
export function joinDuplexes(one: Duplex, other: Duplex): Promise<Error | undefined> {
  let failure: Error | undefined;
  const link = (from: Duplex, to: Duplex): Promise<void> =>
    new Promise((resolve) => {
      from.on('error', (error) => (failure ??= error));
      from.once('close', () => {
        if (!(from.readableEnded && from.writableFinished)) to.destroy(failure);
        resolve();
      });
      if (from.closed) resolve();
      from.pipe(to);
    });
  return Promise.all([link(one, other), link(other, one)]).then(() => failure);
}
