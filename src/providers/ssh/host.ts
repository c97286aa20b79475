/**
 * One host of a pool: what was last seen of it, and what is done there. It remembers nothing that
 * could not be read again from the host; only while the host cannot be reached, what was last seen
 * stands for it, so that its instance does not look gone.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { SshPool } from '../../model/sshSettings.ts';
import type { AgentLaunch, LaunchIntent } from '../contract.ts';
import { needsPerson, type RemoteShell, type RunResult } from '../remote/contract.ts';
import type { Turns } from '../remote/turns.ts';
import { fetchAgent } from './agentFile.ts';
import { courseOf, type Course } from './course.ts';
import { hostScript, launchWords, TAKEN, type Place } from './hostScript.ts';
import { parseReport, type HostReport, type InstanceReport } from './report.ts';

/** What is over stays this long, for those who read its log; unless the host is needed. */
const OVER_KEPT_MS = 60_000;
/** An agent of 100 MB over a slow line. */
const UPLOAD_MS = 600_000;

export interface HostOptions {
  name: string;
  place: Place;
  shell: RemoteShell;
  /** With what this host says for itself. */
  settings: Pick<SshPool, 'resources' | 'agentCommand' | 'commandMs' | 'restarts' | 'retryMaxMs'>;
  /** The agent that the controller serves. */
  version: string;
  /** Of all hosts together. */
  turns: Turns;
  clock: Clock;
  log: Log;
}

export interface Seen {
  report: HostReport;
  /** How far the host's clock is ahead. */
  offMs: number;
}

export interface Trouble {
  reason: string;
  /** A person must change something. */
  person: boolean;
}

export type HostLaunch =
  | { kind: 'launched'; script: string }
  | { kind: 'lost'; reason: string }
  | { kind: 'refused'; trouble: Trouble };

export class Host {
  readonly name: string;
  readonly #options: HostOptions;
  #seen: Seen | undefined;
  /** Why the last look failed. */
  #silence: Trouble | undefined;
  /** Why it could not be launched on, and until when it is not tried again. */
  #trouble: (Trouble & { untilMs: number; waitMs: number }) | undefined;
  #looking: Promise<void> | undefined;
  #mending: Promise<void> | undefined;
  /** A look that began before something was changed there tells old news. */
  #changes = 0;
  #launching = false;
  #overSinceMs: number | undefined;
  #closed = false;
  #agent: AgentLaunch | undefined;

  constructor(options: HostOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Undefined: it was never reached. */
  get seen(): Seen | undefined {
    return this.#seen;
  }

  get silence(): Trouble | undefined {
    return this.#silence;
  }

  /** Why its last launch was refused. */
  get trouble(): Trouble | undefined {
    return this.#trouble;
  }

  get rests(): boolean {
    return this.#trouble !== undefined && this.#options.clock.bootMs() < this.#trouble.untilMs;
  }

  get instance(): InstanceReport | null {
    return this.#seen?.report.instance ?? null;
  }

  get launching(): boolean {
    return this.#launching;
  }

  course(): Course | undefined {
    const seen = this.#seen;
    if (!seen?.report.instance) return undefined;
    return courseOf(seen.report.instance, seen.report.clockS, this.#options.settings.restarts);
  }

  /** Never fails: what could not be seen is `silence`. */
  look(): Promise<void> {
    this.#looking ??= this.#options.turns
      .run(() => this.#lookNow())
      .finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async launch(intent: LaunchIntent, agent: AgentLaunch): Promise<HostLaunch> {
    const { place, settings, version } = this.#options;
    this.#agent = agent;
    const words = launchWords({
      ...{ ...intent, agent, version, host: this.name, pool: place.pool },
      ...{ resources: settings.resources, agentCommand: settings.agentCommand },
    });
    this.#launching = true;
    const result = await this.#say('launch', words.variables).finally(
      () => (this.#launching = false),
    );
    this.#changes++;
    if (result.kind === 'lost') return { kind: 'lost', reason: result.reason };
    if (result.kind === 'ended' && result.code === 0) {
      this.#trouble = undefined;
      this.#assume({ ...blank(intent.label), version, resources: settings.resources });
      return { kind: 'launched', script: words.shown };
    }
    return { kind: 'refused', trouble: this.#refused(result) };
  }

  /** Undefined: it heard us. */
  async stop(label: string): Promise<string | undefined> {
    const result = await this.#say('stop', { label });
    this.#changes++;
    if (result.kind !== 'ended') return result.reason;
    if (result.code !== 0) return failure(result);
    const { instance } = this;
    if (instance?.label === label) this.#assume({ ...instance, state: 'stopping' });
    return undefined;
  }

  async logs(label: string): Promise<string> {
    const result = await this.#say('logs', { label });
    return result.kind === 'ended' ? result.stdout : `cannot be read: ${result.reason}`;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#options.shell.close();
    await Promise.all([this.#looking, this.#mending]);
  }

  async #lookNow(): Promise<void> {
    const { clock } = this.#options;
    const changes = this.#changes;
    const askedMs = clock.now();
    const result = await this.#say('look', {});
    const heardMs = clock.now();
    if (changes !== this.#changes || this.#launching) return;
    const report =
      result.kind === 'ended' && result.code === 0 ? parseReport(result.stdout) : undefined;
    if (!report) {
      this.#silence = silenceOf(result);
      return;
    }
    this.#silence = undefined;
    this.#seen = { report, offMs: clockOff(report.clockS * 1000, askedMs, heardMs) };
    this.#mend();
    this.#clear();
  }

  /** Nobody may ask for the end of what is over already; the host would never be free. */
  #clear(): void {
    const { clock, log } = this.#options;
    const label = this.instance?.label;
    if (label === undefined || this.course()?.kind !== 'over') this.#overSinceMs = undefined;
    else if (this.#overSinceMs === undefined) this.#overSinceMs = clock.bootMs();
    else if (clock.bootMs() - this.#overSinceMs > OVER_KEPT_MS && !this.#closed) {
      log.info({ host: this.name, label }, 'removing what is over');
      void this.stop(label);
    }
  }

  /** An owned machine does not come back by itself. */
  #mend(): void {
    const course = this.course();
    if (this.#closed || this.#mending || course?.kind !== 'restart' || course.waitMs > 0) return;
    const label = this.instance?.label ?? '';
    this.#mending = this.#restart(label, course.upload)
      .catch((error: Error) => this.#tellMending(label, error.message))
      .finally(() => (this.#mending = undefined));
  }

  async #restart(label: string, upload: boolean): Promise<void> {
    const { version, log } = this.#options;
    log.info({ host: this.name, label }, 'starting its agent again');
    if (upload && !this.#options.settings.agentCommand) await this.#upload(label);
    const result = await this.#say('start', { label, version });
    this.#changes++;
    if (result.kind !== 'ended') this.#tellMending(label, result.reason);
    else if (result.code !== 0) this.#tellMending(label, failure(result));
  }

  async #upload(label: string): Promise<void> {
    const { shell, place } = this.#options;
    const { url, authorities } = this.#agent ?? { url: this.instance?.url ?? '', authorities: '' };
    const { sum, body } = await fetchAgent(url, authorities, this.#seen?.report.platform ?? '');
    const script = hostScript('upload', place, { label, sum });
    const result = await shell.run(script, { stdin: body, timeoutMs: UPLOAD_MS });
    body.destroy();
    if (result.kind !== 'ended') throw new Error(result.reason);
    if (result.code !== 0) throw new Error(failure(result));
  }

  #tellMending(label: string, reason: string): void {
    const { log } = this.#options;
    log.warn({ host: this.name, label, reason }, 'its agent could not be started again');
  }

  #refused(result: Exclude<RunResult, { kind: 'lost' }>): Trouble {
    const { clock, settings } = this.#options;
    const trouble = silenceOf(result);
    if (result.kind === 'ended' && result.code === TAKEN) {
      trouble.reason = 'another instance is there';
    }
    const first = settings.retryMaxMs / 100;
    const waitMs = Math.min(settings.retryMaxMs, (this.#trouble?.waitMs ?? first / 2) * 2);
    this.#trouble = { ...trouble, waitMs, untilMs: clock.bootMs() + waitMs };
    return trouble;
  }

  /** Until the next look says so. */
  #assume(instance: InstanceReport): void {
    if (this.#seen) this.#seen = { ...this.#seen, report: { ...this.#seen.report, instance } };
  }

  #say(
    verb: Parameters<typeof hostScript>[0],
    variables: Record<string, string>,
  ): Promise<RunResult> {
    const { shell, place, settings } = this.#options;
    return shell
      .run(hostScript(verb, place, variables), { timeoutMs: settings.commandMs })
      .catch(({ message }: Error) => {
        // Such as no room for the socket: nothing was said.
        return { kind: 'unreachable', problem: 'client', reason: message };
      });
  }
}

function blank(label: string): InstanceReport {
  const starts = { inRow: 1, lastS: 0 };
  const texts = { version: '', resources: '', url: '', log: '' };
  return { label, state: 'running', ...texts, starts, exit: null, rebooted: false };
}

/** The time on the way counts for neither. */
function clockOff(hostMs: number, askedMs: number, heardMs: number): number {
  if (hostMs > heardMs) return hostMs - heardMs;
  return hostMs + 1000 < askedMs ? hostMs + 1000 - askedMs : 0;
}

function silenceOf(result: RunResult): Trouble {
  if (result.kind === 'ended') return { reason: failure(result), person: false };
  const person = result.kind === 'unreachable' && needsPerson(result.problem);
  return { reason: result.reason, person };
}

function failure({ code, stderr }: { code: number; stderr: string }): string {
  const words = stderr.split('\n').slice(-2).join(': ').slice(0, 500);
  return words || `the script for hosts ended with code ${code}`;
}
