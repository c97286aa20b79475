/** Runs what a connector is told, each command once, a few at a time, and keeps what they said. */
import type { Clock } from '../lib/clock.ts';
import { CONNECTOR_LIMITS, type ConnectorCommand } from '../model/connector.ts';
import type { ConnectorResult } from '../model/connector.ts';

export const RUNNER_LIMITS = {
  /** Commands at once: the login node is other people's too. */
  running: 16,
  /** Ids that are remembered, so that a command told twice runs once. */
  remembered: 10_000,
};

/** The shell of this machine. `unreachable`: it was not started. */
export interface Shell {
  run(
    argv: readonly string[],
    options: { stdin: string; timeoutMs: number },
  ): Promise<
    | { kind: 'ended'; code: number; stdout: string; stderr: string }
    | { kind: 'unreachable' | 'lost'; reason: string }
  >;
  close(): Promise<void>;
}

export interface RunnerOptions {
  shell: Shell;
  clock: Clock;
  /** Called for each command that has ended. */
  onResult: (result: ConnectorResult) => void;
}

export class Runner {
  readonly #options: RunnerOptions;
  readonly #seen = new Set<string>();
  readonly #waiting: { command: ConnectorCommand; untilBootMs: number }[] = [];
  #running = 0;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  start(commands: readonly ConnectorCommand[]): void {
    const nowMs = this.#options.clock.bootMs();
    for (const command of commands) {
      if (this.#seen.has(command.id)) continue;
      this.#remember(command.id);
      this.#waiting.push({ command, untilBootMs: nowMs + command.timeoutMs });
    }
    this.#next();
  }

  async close(): Promise<void> {
    this.#waiting.length = 0;
    await this.#options.shell.close();
  }

  #next(): void {
    while (this.#running < RUNNER_LIMITS.running) {
      const next = this.#waiting.shift();
      if (!next) return;
      this.#running++;
      void this.#run(next.command, next.untilBootMs).then((result) => {
        this.#running--;
        this.#options.onResult(result);
        this.#next();
      });
    }
  }

  async #run(command: ConnectorCommand, untilBootMs: number): Promise<ConnectorResult> {
    const { id, argv, stdin } = command;
    // Nobody waits longer for it than its own time.
    const timeoutMs = untilBootMs - this.#options.clock.bootMs();
    if (timeoutMs <= 0) {
      return { id, kind: 'not-started', reason: 'too many commands ran on the login node' };
    }
    try {
      const result = await this.#options.shell.run(argv, { stdin, timeoutMs });
      if (result.kind === 'unreachable') return { id, kind: 'not-started', reason: result.reason };
      return bounded({ id, ...result } as ConnectorResult);
    } catch (error) {
      return { id, kind: 'lost', reason: `the connector failed: ${String(error)}`.slice(0, 1000) };
    }
  }

  #remember(id: string): void {
    this.#seen.add(id);
    if (this.#seen.size <= RUNNER_LIMITS.remembered) return;
    for (const oldest of this.#seen) {
      this.#seen.delete(oldest);
      return;
    }
  }
}

/** What is too long to be sent is lost as a whole: half a list would look like a whole one. */
function bounded(result: ConnectorResult): ConnectorResult {
  if (result.kind !== 'ended') return { ...result, reason: result.reason.slice(0, 1000) };
  const bytes = Buffer.byteLength(JSON.stringify(result));
  if (bytes <= CONNECTOR_LIMITS.resultBytes) return result;
  const reason = `it printed ${bytes} bytes, and ${CONNECTOR_LIMITS.resultBytes} can be sent`;
  return { id: result.id, kind: 'lost', reason };
}
