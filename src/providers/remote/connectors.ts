/**
 * Shells at places that nobody can reach from here: a connector that a user started there asks for
 * commands, runs them and brings back what they said. What was not fetched was not started; what
 * was fetched and not answered is lost.
 */
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import type { ConnectorCommand, ConnectorResult } from '../../model/connector.ts';
import type { RemoteShell, RunOptions, RunResult } from './contract.ts';

/** Without a word from a connector for this long, it is taken to be gone. */
const SILENT_AFTER_MS = 45_000;
const RUN_TIMEOUT_MS = 30_000;
/** What a connector may add to a command's own time before its answer counts as lost. */
const WAY_BACK_MS = 15_000;
/** Commands of one site that wait to be fetched. */
const WAITING_MOST = 200;

interface Waiting {
  command: ConnectorCommand;
  settle: (result: RunResult) => void;
  timer: Timer;
  fetched: boolean;
}

interface Site {
  heardAtBootMs: number | null;
  waiting: Map<string, Waiting>;
  /** Parked calls, one of each connector; the last came last. */
  parked: Map<string, () => void>;
}

export interface Exchange {
  /** Random with each start of a connector. */
  connector: string;
  results: readonly ConnectorResult[];
  /** How long the call is held where there is nothing to do. */
  waitMs: number;
}

export class Connectors {
  readonly #clock: Clock;
  readonly #sites = new Map<string, Site>();
  /** A result that was meant for an earlier controller answers nothing of ours. */
  readonly #start: string;
  #minted = 0;
  #closed = false;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#start = random.hex(6);
  }

  shell(name: string): RemoteShell {
    return {
      name: `the connector of site ${name}`,
      run: (command, options = {}) => this.#run(name, command, options),
      close: async () => this.#close(name),
    };
  }

  /** Whether commands of the site would be fetched just now. */
  inContact(name: string): boolean {
    return this.#inContact(this.#site(name));
  }

  /** What a connector brings, and what it is to do next; waits for that up to `waitMs`. */
  async exchange(
    name: string,
    { connector, results, waitMs }: Exchange,
  ): Promise<ConnectorCommand[]> {
    const site = this.#site(name);
    site.heardAtBootMs = this.#clock.bootMs();
    for (const result of results) {
      const waiting = site.waiting.get(result.id);
      if (waiting?.fetched) this.#settle(site, result.id, runResult(result));
    }
    let commands = this.#fetch(site);
    if (commands.length === 0 && waitMs > 0 && !this.#closed) {
      const isNewest = await this.#park(site, connector, waitMs);
      // The answer of an older call may reach nobody.
      commands = isNewest ? this.#fetch(site) : [];
    }
    site.heardAtBootMs = this.#clock.bootMs();
    return commands;
  }

  /** Lets go of all calls that are held, and of whoever waits for a command or would. */
  close(): void {
    this.#closed = true;
    for (const name of this.#sites.keys()) this.#close(name);
  }

  async #run(
    name: string,
    command: string | readonly string[],
    { stdin, timeoutMs = RUN_TIMEOUT_MS }: RunOptions,
  ): Promise<RunResult> {
    const site = this.#site(name);
    if (this.#closed) return unreachable(name, 'the controller stops');
    if (!this.#inContact(site)) return unreachable(name, 'no connector is in contact');
    if (site.waiting.size >= WAITING_MOST) return unreachable(name, 'too many commands wait');
    const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : [...command];
    const id = `${this.#start}-${++this.#minted}`;
    // At once where it can be: a command must not miss the call that would fetch it.
    const input = typeof stdin === 'object' ? await textOf(stdin) : (stdin ?? '');
    return new Promise((resolve) => {
      const timer = this.#clock.setTimer(timeoutMs + WAY_BACK_MS, () => {
        const seconds = Math.round((timeoutMs + WAY_BACK_MS) / 1000);
        const late = `no answer within ${seconds} s`;
        const fetched = site.waiting.get(id)?.fetched === true;
        const result = fetched
          ? ({ kind: 'lost', reason: late } as const)
          : unreachable(name, late);
        this.#settle(site, id, result);
      });
      const told = { id, argv, stdin: input, timeoutMs };
      site.waiting.set(id, { command: told, settle: resolve, timer, fetched: false });
      [...site.parked.values()].at(-1)?.();
    });
  }

  #fetch(site: Site): ConnectorCommand[] {
    const commands: ConnectorCommand[] = [];
    for (const waiting of site.waiting.values()) {
      if (waiting.fetched) continue;
      waiting.fetched = true;
      commands.push(waiting.command);
    }
    return commands;
  }

  /** A newer call of the same connector takes the place of one that is parked. */
  #park(site: Site, connector: string, waitMs: number): Promise<boolean> {
    const older = site.parked.get(connector);
    return new Promise((resolve) => {
      const wake = (): void => {
        timer.cancel();
        const isNewest = site.parked.get(connector) === wake;
        if (isNewest) site.parked.delete(connector);
        resolve(isNewest);
      };
      const timer = this.#clock.setTimer(waitMs, wake);
      site.parked.delete(connector);
      site.parked.set(connector, wake);
      older?.();
    });
  }

  #settle(site: Site, id: string, result: RunResult): void {
    const waiting = site.waiting.get(id);
    if (!waiting) return;
    site.waiting.delete(id);
    waiting.timer.cancel();
    waiting.settle(result);
  }

  #inContact({ heardAtBootMs, parked }: Site): boolean {
    if (parked.size > 0) return true;
    return heardAtBootMs !== null && this.#clock.bootMs() - heardAtBootMs < SILENT_AFTER_MS;
  }

  #close(name: string): void {
    const site = this.#site(name);
    for (const [id, { fetched }] of [...site.waiting]) {
      const reason = 'the controller stops';
      this.#settle(site, id, fetched ? { kind: 'lost', reason } : unreachable(name, reason));
    }
    for (const wake of [...site.parked.values()]) wake();
  }

  #site(name: string): Site {
    let site = this.#sites.get(name);
    if (!site) {
      site = { heardAtBootMs: null, waiting: new Map(), parked: new Map() };
      this.#sites.set(name, site);
    }
    return site;
  }
}

function runResult(result: ConnectorResult): RunResult {
  if (result.kind === 'lost') return { kind: 'lost', reason: result.reason };
  if (result.kind === 'not-started') {
    return { kind: 'unreachable', problem: 'shell', reason: result.reason };
  }
  const { code, stdout, stderr } = result;
  return { kind: 'ended', code, stdout, stderr };
}

function unreachable(site: string, why: string): RunResult {
  const reason = `site ${site}: ${why}; start one on its login node with: drover connector`;
  return { kind: 'unreachable', problem: 'network', reason };
}

async function textOf(stdin: Exclude<RunOptions['stdin'], string | undefined>): Promise<string> {
  if (stdin instanceof Uint8Array) return Buffer.from(stdin).toString('utf8');
  const parts: Buffer[] = [];
  for await (const part of stdin) parts.push(Buffer.from(part as Uint8Array));
  return Buffer.concat(parts).toString('utf8');
}
