/** The world as a command sees it: streams, environment, time and Ctrl-C, passed in. */
import { once } from 'node:events';
import type { Simulate } from '../protocol/simulation.ts';

export interface Output {
  readonly isTTY: boolean;
  /** Width of the terminal; 0 where there is none. */
  readonly columns: number;
  /** Resolves when more may be written, so that a slow reader slows the stream down. */
  write(data: string | Uint8Array): Promise<void>;
}

export interface CliIo {
  env: Record<string, string | undefined>;
  cwd: string;
  stdin: NodeJS.ReadStream;
  stdout: Output;
  stderr: Output;
  now(): number;
  /** Takes over Ctrl-C until the returned function is called. */
  onInterrupt(handler: () => void): () => void;
  /** The simulator, where the program has one: it is no part of the command line. */
  simulate?: Simulate;
  /** The program has no servers in it: it is the file of `make cli-bundle`. */
  clientOnly?: boolean;
}

/** Whoever read our output has gone (`drover logs X | head`): end quietly. */
export class OutputClosed extends Error {
  constructor(cause: unknown) {
    super('the reader of the output is gone', { cause });
    this.name = 'OutputClosed';
  }
}

export function systemIo(): CliIo {
  return {
    env: process.env,
    cwd: process.cwd(),
    get stdin() {
      return process.stdin;
    },
    stdout: streamOutput(process.stdout),
    stderr: streamOutput(process.stderr),
    now: () => Date.now(),
    onInterrupt(handler) {
      process.on('SIGINT', handler);
      return () => process.off('SIGINT', handler);
    },
  };
}

function streamOutput(stream: NodeJS.WriteStream): Output {
  let failure: Error | undefined;
  stream.on('error', (error) => {
    failure = error;
  });
  return {
    isTTY: stream.isTTY ?? false,
    get columns() {
      return stream.columns ?? 0;
    },
    async write(data) {
      if (failure) throw new OutputClosed(failure);
      if (stream.write(data)) return;
      try {
        await once(stream, 'drain');
      } catch (error) {
        throw new OutputClosed(error);
      }
    },
  };
}

/** Colour by meaning, only where a person looks and has not asked for none. */
export function colours(io: CliIo, output: Output) {
  const on = output.isTTY && !io.env['NO_COLOR'] && io.env['TERM'] !== 'dumb';
  const paint = (code: number) => (text: string) => (on ? `\x1b[${code}m${text}\x1b[0m` : text);
  return { red: paint(31), green: paint(32), yellow: paint(33), blue: paint(34), dim: paint(2) };
}

export type Paint = ReturnType<typeof colours>;

export async function readAll(stream: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}
