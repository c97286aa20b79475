/** Runs a command line in this process and keeps what it printed. */
import { Readable } from 'node:stream';
import type { Simulate } from '../protocol/simulation.ts';
import { runCli } from './cli.ts';
import type { CliIo, Output } from './io.ts';
import { FAKE_TOKEN } from './fakeServer.ts';

export interface Captured {
  code: number;
  stdout: string;
  stderr: string;
  stdoutBytes: Buffer;
  stderrBytes: Buffer;
}

export interface CaptureOptions {
  url?: string;
  env?: Record<string, string>;
  stdin?: string;
  /** Columns of the terminal both outputs are; 0 for pipes. */
  columns?: number;
  cwd?: string;
  simulate?: Simulate;
  /** Given the function that presses Ctrl-C. */
  onReady?: (press: () => void) => void;
}

export async function capture(args: string[], options: CaptureOptions = {}): Promise<Captured> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  const handlers = new Set<() => void>();
  const io: CliIo = {
    env: {
      HOME: '/nonexistent',
      ...(options.url ? { DROVER_URL: options.url, DROVER_TOKEN: FAKE_TOKEN } : {}),
      ...options.env,
    },
    cwd: options.cwd ?? '/srv/lab',
    stdin: Readable.from(options.stdin ? [options.stdin] : []) as unknown as NodeJS.ReadStream,
    stdout: keep(stdout, options.columns ?? 0),
    stderr: keep(stderr, options.columns ?? 0),
    now: () => Date.now(),
    ...(options.simulate ? { simulate: options.simulate } : {}),
    onInterrupt(handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
  };
  options.onReady?.(() => {
    for (const handler of handlers) handler();
  });
  const code = await runCli(args, io);
  const [stdoutBytes, stderrBytes] = [Buffer.concat(stdout), Buffer.concat(stderr)];
  return {
    code,
    stdout: stdoutBytes.toString(),
    stderr: stderrBytes.toString(),
    stdoutBytes,
    stderrBytes,
  };
}

function keep(chunks: Buffer[], columns: number): Output {
  return {
    isTTY: columns > 0,
    columns,
    async write(data) {
      chunks.push(Buffer.from(data as string));
    },
  };
}
