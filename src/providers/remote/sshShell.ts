/** The shell of another machine, by the system's OpenSSH client over one held connection. */
import { spawn } from 'node:child_process';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { RemoteShell, RunOptions, RunResult } from './contract.ts';
import { converse, listen } from './conversation.ts';
import { ownEnvironment } from './environment.ts';
import { SshConnection, type Backoff } from './sshConnection.ts';
import { nameOf, type SshDestination } from './sshDestination.ts';
import { createTurns } from './turns.ts';

/** A server takes ten sessions per connection unless told otherwise; one holds it open. */
export const SESSIONS_AT_ONCE = 6;
const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_CONNECT_MS = 15_000;
const DEFAULT_BACKOFF: Backoff = { minMs: 2000, maxMs: 120_000 };

export interface SshShellOptions {
  destination: SshDestination;
  /** How long connecting may take, jump hosts included. */
  connectMs?: number;
  /** How long a failed connection is not tried again. */
  backoff?: Backoff;
  clock: Clock;
  random: Random;
  log: Log;
}

export function createSshShell(options: SshShellOptions): RemoteShell {
  const { destination, clock, random, log } = options;
  const { connectMs = DEFAULT_CONNECT_MS, backoff = DEFAULT_BACKOFF } = options;
  const connection = new SshConnection({ destination, connectMs, backoff, clock, log });
  const running = new Set<() => void>();
  const turns = createTurns(SESSIONS_AT_ONCE);

  async function say(
    command: string | readonly string[],
    stdin: RunOptions['stdin'],
    endsAtMs: number,
  ): Promise<RunResult | 'broken'> {
    const problem = await connection.open();
    if (problem) return { kind: 'unreachable', ...problem };
    const mark = `drover-${random.hex(8)}`;
    const args = [...connection.clientArguments(), '--', destination.host, listen(mark)];
    const child = spawn('ssh', args, { env: ownEnvironment(), detached: true });
    const stop = (): void => void child.kill('SIGKILL');
    running.add(stop);
    const timeoutMs = Math.max(1, endsAtMs - clock.bootMs());
    const outcome = await converse({ child, mark, command, stdin, timeoutMs, stop, clock });
    running.delete(stop);
    if (outcome.kind !== 'unsaid') return outcome;
    connection.drop();
    if (!outcome.late) return 'broken';
    const reason = `${nameOf(destination)}: no answer within ${timeoutMs} ms`;
    return { kind: 'unreachable', problem: 'timeout', reason };
  }

  /** A connection may have broken unnoticed: nothing was said, so it is said on a new one. */
  async function sayTwice(...words: Parameters<typeof say>): Promise<RunResult> {
    let result = await say(...words);
    if (result === 'broken') result = await say(...words);
    if (result !== 'broken') return result;
    const reason = `${nameOf(destination)}: it lets us in, but no /bin/sh answers there`;
    return { kind: 'unreachable', problem: 'shell', reason };
  }

  return {
    name: nameOf(destination),
    async run(command, { stdin, timeoutMs = DEFAULT_TIMEOUT_MS } = {}) {
      const endsAtMs = clock.bootMs() + timeoutMs;
      return turns.run(() => sayTwice(command, stdin, endsAtMs));
    },
    async close() {
      for (const stop of running) stop();
      connection.close();
    },
  };
}
