/**
 * One held connection to a host: an `ssh` that listens on a socket for others. It is made when it
 * is needed, made again after it broke, and after a failure not tried again for a while, since a
 * host that counts wrong keys would shut us out. It ends with this process: what it runs on the
 * other side reads until we are gone.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { ownEnvironment } from './environment.ts';
import { configText, connectArguments, nameOf, type SshDestination } from './sshDestination.ts';
import { sshProblem, type SshProblem } from './sshProblem.ts';

/** A socket's path has 107 bytes at most, and ssh needs 18 of them while it makes it. */
const LONGEST_FOLDER = 80;
const READY = 'drover-connected';

export interface Backoff {
  minMs: number;
  maxMs: number;
}

export interface ConnectionOptions {
  destination: SshDestination;
  connectMs: number;
  backoff: Backoff;
  clock: Clock;
  log: Log;
}

export class SshConnection {
  readonly #options: ConnectionOptions;
  #folder: string | undefined;
  #open: { dead: boolean; end: () => void } | undefined;
  #opening: Promise<SshProblem | undefined> | undefined;
  #failure: (SshProblem & { untilMs: number; waitMs: number }) | undefined;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Undefined: it stands. Otherwise why not; asking again soon gives the same answer. */
  async open(): Promise<SshProblem | undefined> {
    const { clock } = this.#options;
    if (this.#closed) return { problem: 'network', reason: 'the connection was closed' };
    if (this.#open && !this.#open.dead) return undefined;
    if (this.#failure && clock.bootMs() < this.#failure.untilMs) return this.#failure;
    this.#opening ??= this.#connect().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  /** How a client goes through it; where it is gone the client fails instead of dialling itself. */
  clientArguments(): string[] {
    const { destination } = this.#options;
    const through = ['-S', this.#socket(), '-o', 'ControlMaster=no', '-o', 'ProxyCommand=false'];
    return [
      '-F',
      this.#config(),
      ...through,
      ...connectArguments({ ...destination, proxyJump: '' }),
    ];
  }

  /** It does not do what it should: the next call makes a new one. */
  drop(): void {
    this.#open?.end();
    this.#open = undefined;
  }

  close(): void {
    this.#closed = true;
    this.drop();
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }

  async #connect(): Promise<SshProblem | undefined> {
    const { clock, log, destination, backoff } = this.#options;
    const problem = await this.#dial();
    if (this.#closed) this.drop();
    if (!problem) {
      this.#failure = undefined;
      log.info({ host: nameOf(destination) }, 'connected by ssh');
      return undefined;
    }
    const waitMs = Math.min(backoff.maxMs, (this.#failure?.waitMs ?? backoff.minMs / 2) * 2);
    const untilMs = clock.bootMs() + waitMs;
    this.#failure = { ...problem, waitMs, untilMs };
    log.warn({ host: nameOf(destination), waitMs, reason: problem.reason }, 'no ssh connection');
    return problem;
  }

  #dial(): Promise<SshProblem | undefined> {
    const { destination, connectMs, clock } = this.#options;
    rmSync(this.#socket(), { force: true });
    const args = ['-F', this.#config(), '-M', '-S', this.#socket()];
    const words = [...connectArguments(destination), '--', destination.host];
    // `cat` ends when our side is gone, and with it the connection.
    const child = spawn('ssh', [...args, ...words, `echo ${READY}; exec cat`], {
      env: ownEnvironment(),
      detached: true,
    });
    const held = { dead: false, end: () => void child.kill() };
    let [out, stderr] = ['', ''];
    return new Promise((resolve) => {
      const limit = clock.setTimer(connectMs, () => {
        const late = `no connection within ${connectMs} ms`;
        child.kill('SIGKILL');
        resolve({ problem: 'timeout', reason: `${nameOf(destination)}: ${late}` });
      });
      const fail = (text: string): void => {
        held.dead = true;
        limit.cancel();
        resolve(sshProblem(destination, text));
      };
      child.stdin.on('error', () => undefined); // Its end is heard by 'close'.
      child.stdout.on('data', (chunk: Buffer) => {
        out = (out + chunk.toString()).slice(-10_000);
        if (!out.includes(READY)) return;
        limit.cancel();
        this.#open = held;
        resolve(undefined);
      });
      child.stderr.on('data', (chunk: Buffer) => (stderr = (stderr + chunk).slice(-10_000)));
      child.on('error', (error) => fail(`${error.message} ${stderr}`));
      child.on('close', () => fail(stderr));
    });
  }

  #socket(): string {
    return join(this.#ownFolder(), 's');
  }

  #config(): string {
    return join(this.#ownFolder(), 'config');
  }

  /** Nobody else may use the socket: mkdtemp makes folders for the owner alone. */
  #ownFolder(): string {
    if (this.#folder) return this.#folder;
    const base = tmpdir().length > LONGEST_FOLDER ? '/tmp' : tmpdir();
    mkdirSync(base, { recursive: true });
    this.#folder = mkdtempSync(join(base, 'drover-ssh-'));
    const seconds = Math.max(1, Math.round(this.#options.connectMs / 1000));
    writeFileSync(this.#config(), configText(this.#options.destination, seconds), { mode: 0o600 });
    return this.#folder;
  }
}
