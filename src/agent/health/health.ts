/**
 * Looks at the machine: all of it on a period, what is cheap also around attempts, whose start
 * never waits for it. One that hangs is itself a finding, and is not asked again while it does.
 */
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { HealthCheck, HealthProblem } from '../../model/health.ts';
import { AGENT_LIMITS } from '../../protocol/agent.ts';
import type { Check, Finding } from './check.ts';

export interface HealthOptions {
  checks: readonly Check[];
  /** Names of checks that may warn but not drain. */
  warnOnly: readonly HealthCheck[];
  periodMs: number;
  clock: Clock;
  log: Log;
}

/** Attempts that come sooner after each other share a look; what drains is looked at so often. */
export const REST_MS = 10_000;
/** A check without an answer for this long is told of; after twice as long it drains. */
export const ANSWER_LIMIT_MS = 45_000;
/** The protocol takes 1024. */
const MESSAGE_LENGTH = 1000;

interface Watched {
  check: Check;
  findings: Finding[];
  /** Set while it is being asked, also when nobody waits for it any more. */
  answer: Promise<void> | undefined;
  askedBootMs: number;
}

interface Shown {
  id: string;
  finding: Finding;
  problem: HealthProblem;
}

export class Health {
  readonly #options: HealthOptions;
  readonly #watched: Watched[];
  readonly #timers = new Set<Timer>();
  #shown: Shown[] = [];
  #listeners: (() => void)[] = [];
  #resting = { every: false, gpu: false };
  #askedMeanwhile = { every: false, gpu: false };
  #lookingAgain = false;
  #closed = false;
  /** Rises with every change; 0: nobody has looked yet. */
  version = 0;

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#watched = options.checks.map((check) => ({
      ...{ check, findings: [], answer: undefined, askedBootMs: 0 },
    }));
  }

  /** The first look, and then one every period. */
  async start(): Promise<void> {
    await this.#lookAtAll();
    if (this.version === 0) this.#told();
    this.#later(this.#options.periodMs, () => void this.start());
  }

  problems(): readonly HealthProblem[] {
    return this.#shown.map(({ problem }) => problem);
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** An attempt begins or has ended. Costs next to nothing: thousands a second may call it. */
  attemptMoved(hasGpus: boolean): void {
    this.#lookRarely('every');
    if (hasGpus) this.#lookRarely('gpu');
  }

  /** Looks at once at what could explain why an attempt failed. */
  async lookNow(): Promise<void> {
    await Promise.all(this.#around('gpu', 'every').map((one) => this.#run(one)));
  }

  /** Why an attempt with these GPUs cannot be expected to work; undefined: nothing is known. */
  blame(gpus: readonly number[]): string | undefined {
    const found = this.#shown.find(({ finding, problem: { severity, device } }) => {
      if (severity !== 'drain' || finding.blames === 'nobody') return false;
      if (finding.blames === 'everybody') return true;
      return gpus.length > 0 && (device === undefined || gpus.includes(device));
    });
    return found?.problem.message;
  }

  get isDraining(): boolean {
    return this.#shown.some(({ problem }) => problem.severity === 'drain');
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#listeners = [];
  }

  /** One after the other: a machine at work should not notice. */
  async #lookAtAll(): Promise<void> {
    for (const one of this.#watched) await this.#run(one);
  }

  #lookRarely(kind: 'every' | 'gpu'): void {
    if (this.#closed) return;
    if (this.#resting[kind]) {
      this.#askedMeanwhile[kind] = true;
      return;
    }
    this.#resting[kind] = true;
    for (const one of this.#around(kind)) void this.#run(one);
    this.#later(REST_MS, () => {
      this.#resting[kind] = false;
      if (!this.#askedMeanwhile[kind]) return;
      this.#askedMeanwhile[kind] = false;
      this.#lookRarely(kind);
    });
  }

  #around(...kinds: Check['around'][]): Watched[] {
    return this.#watched.filter(({ check }) => kinds.includes(check.around));
  }

  /** Resolves when it has answered, or takes too long to wait for. */
  #run(one: Watched): Promise<void> {
    if (this.#closed) return Promise.resolve();
    one.answer ??= this.#ask(one);
    const { answer } = one;
    return new Promise((resolve) => {
      const timer = this.#later(limitOf(one), () => {
        if (one.answer === answer) this.#late(one);
        resolve();
      });
      void answer.then(() => {
        this.#cancel(timer);
        resolve();
      });
    });
  }

  async #ask(one: Watched): Promise<void> {
    const { check } = one;
    one.askedBootMs = this.#options.clock.bootMs();
    try {
      one.findings = await check.look();
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      this.#options.log.warn({ check: check.name, err: error }, 'a check of the machine failed');
      const failed = { ...ofCheck(check, 'failed', 'warn'), message: `cannot check: ${problem}` };
      one.findings = [...one.findings.filter(({ key }) => key !== 'failed'), failed];
    }
    one.answer = undefined;
    this.#publish();
  }

  /** It may be stuck in the kernel, with the device or disk it asked. */
  #late(one: Watched): void {
    const forMs = this.#options.clock.bootMs() - one.askedBootMs;
    const severity = forMs < 2 * limitOf(one) ? 'warn' : 'drain';
    const blames = one.check.around === 'gpu' ? 'gpu' : 'nobody';
    const message = `no answer for ${Math.round(forMs / 1000)} s: the check hangs`;
    one.findings = [{ ...ofCheck(one.check, 'late', severity), message, blames }];
    this.#publish();
  }

  #publish(): void {
    if (this.#closed) return;
    const before = new Map(this.#shown.map((one) => [one.id, one]));
    const found = this.#watched.flatMap(({ findings }) => findings);
    const shown = found.map((finding) => this.#show(finding, before));
    // What drains comes first, so that a limit never hides it.
    shown.sort((a, b) => rank(a) - rank(b) || (a.id < b.id ? -1 : 1));
    shown.length = Math.min(shown.length, AGENT_LIMITS.problems);
    const after = new Set(shown.map(({ id }) => id));
    const gone = this.#shown.filter(({ id }) => !after.has(id));
    const fresh = shown.filter(({ id }) => !before.has(id));
    this.#shown = shown;
    const { log } = this.#options;
    for (const { problem } of fresh)
      log.warn({ ...problem }, 'something is wrong with the machine');
    for (const { problem } of gone) log.info({ ...problem }, 'no longer wrong with the machine');
    if (gone.length > 0 || fresh.length > 0) this.#told();
    if (this.isDraining) this.#lookAgain();
  }

  /** What keeps work away is looked at more often than the rest: it may be over. */
  #lookAgain(): void {
    if (this.#lookingAgain) return;
    this.#lookingAgain = true;
    this.#later(REST_MS, () => {
      this.#lookingAgain = false;
      const bad = this.#watched.filter(({ findings }) =>
        findings.some(({ severity }) => severity === 'drain'),
      );
      for (const one of bad) void this.#run(one);
    });
  }

  /** One that was there before keeps its words: else every look would have news to tell. */
  #show(finding: Finding, before: ReadonlyMap<string, Shown>): Shown {
    const { check, key, device, message } = finding;
    const drains = finding.severity === 'drain' && !this.#options.warnOnly.includes(check);
    const severity = drains ? 'drain' : 'warn';
    const id = `${check} ${key} ${severity}`;
    const earlier = before.get(id);
    if (earlier) return { ...earlier, finding };
    const text = message.slice(0, MESSAGE_LENGTH);
    const problem = { check, severity, message: text, ...(device !== undefined && { device }) };
    return { id, finding, problem } as Shown;
  }

  #told(): void {
    this.version++;
    for (const listener of this.#listeners) listener();
  }

  #later(delayMs: number, run: () => void): Timer | undefined {
    if (this.#closed) return undefined;
    const timer: Timer = this.#options.clock.setTimer(delayMs, () => {
      this.#timers.delete(timer);
      run();
    });
    this.#timers.add(timer);
    return timer;
  }

  #cancel(timer: Timer | undefined): void {
    if (!timer) return;
    timer.cancel();
    this.#timers.delete(timer);
  }
}

function ofCheck({ name }: Check, key: string, severity: 'warn' | 'drain'): Finding {
  return { check: name, key, severity, message: '', blames: 'nobody' };
}

const limitOf = ({ check }: Watched): number => check.limitMs ?? ANSWER_LIMIT_MS;

const rank = ({ problem }: Shown): number => (problem.severity === 'drain' ? 0 : 1);
