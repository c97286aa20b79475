/**
 * Measures attempts while they run, all at one beat, so that devices are asked once for everybody.
 * Lines go to a file beside the job's own metrics: it outlives the agent, and the spool sends both.
 * What ends before its first beat costs an entry in a map.
 */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { IdleRule } from '../../model/jobParts.ts';
import { METRICS_FILE, SYSTEM, SYSTEM_METRICS_FILE } from '../../model/metric.ts';
import type { Step } from '../around.ts';
import { appendToPlainFile } from '../plainFile.ts';
import type { Started } from '../runtimes/around.ts';
import type { DeviceUses, ReadDevices } from './devices.ts';
import { IdleWatch } from './idle.ts';
import { sampleLine, type Before } from './sample.ts';
import { readLines, usedFacts } from './used.ts';

export interface MetricsOptions {
  periodMs: number;
  clock: Clock;
  log: Log;
  readDevices: ReadDevices;
  /** Called at each beat for what runs: it may have metrics to send by now. */
  look: (uid: string) => void;
}

interface Watched {
  started: Started;
  sinceBootMs: number;
  before: Before | undefined;
  idle: IdleWatch | undefined;
  isIdle: boolean;
}

export function createMetrics(options: MetricsOptions): Step {
  const metrics = new Metrics(options);
  return {
    watch: (started) => metrics.watch(started),
    needsFinish: (_, home) =>
      existsSync(join(home, SYSTEM_METRICS_FILE)) || existsSync(join(home, METRICS_FILE)),
    finish: async ({ home }) => ({ facts: usedFacts(home) }),
  };
}

class Metrics {
  readonly #options: MetricsOptions;
  readonly #watched = new Map<string, Watched>();
  #timer: Timer | undefined;
  #beating = false;

  constructor(options: MetricsOptions) {
    this.#options = options;
  }

  watch(started: Started): () => void {
    const { uid } = started.order;
    const sinceBootMs = this.#options.clock.bootMs();
    const one = { started, sinceBootMs, before: undefined, idle: undefined, isIdle: false };
    this.#watched.set(uid, one);
    this.#arm();
    return () => {
      this.#watched.delete(uid);
      if (this.#watched.size > 0) return;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  #arm(): void {
    const { clock, periodMs } = this.#options;
    if (this.#timer || this.#beating || this.#watched.size === 0) return;
    this.#timer = clock.setTimer(periodMs, () => {
      this.#timer = undefined;
      void this.#beat();
    });
  }

  async #beat(): Promise<void> {
    const { clock, log, periodMs, readDevices, look } = this.#options;
    this.#beating = true;
    try {
      const hasDevices = [...this.#watched.values()].some(({ started }) => usesGpus(started));
      const devices = hasDevices ? await readDevices() : undefined;
      const bootMs = clock.bootMs();
      for (const [uid, one] of this.#watched) {
        try {
          if (bootMs - one.sinceBootMs >= periodMs) this.#measure(one, devices);
          look(uid);
        } catch (error) {
          log.warn({ attempt: uid, error }, 'an attempt could not be measured');
        }
      }
    } finally {
      this.#beating = false;
      this.#arm();
    }
  }

  #measure(one: Watched, devices: DeviceUses | undefined): void {
    const { started } = one;
    const { order, home, pids } = started;
    const atMs = this.#options.clock.now();
    const use = started.use();
    one.before ??= this.#first(one);
    const own = usesGpus(started) ? devices : undefined;
    const line = sampleLine({ atMs, use, before: one.before, order, devices: own, pids });
    one.before = { atMs, cpuMs: use.cpuMs };
    const text = `${JSON.stringify(line)}\n`;
    appendToPlainFile(join(home, SYSTEM_METRICS_FILE), text);
    const percent = line[SYSTEM.devicePercent];
    if (!order.idle || !one.idle || percent === undefined) return;
    judge(one, order.idle, one.idle.add(atMs, percent));
  }

  /** An earlier agent may have begun: its last lines count, and a torn one is closed. */
  #first(one: Watched): Before {
    const { order, home } = one.started;
    const lines = readLines(join(home, SYSTEM_METRICS_FILE), true);
    if (order.idle) {
      one.idle = new IdleWatch(order.idle, this.#options.periodMs);
      for (const { atMs = 0, values } of lines) {
        const percent = values[SYSTEM.devicePercent];
        if (percent != null) judge(one, order.idle, one.idle.add(atMs, percent));
      }
    }
    // Written by its shim when it started: what it used until now was used since then.
    return { atMs: statSync(join(home, 'pid')).mtimeMs, cpuMs: 0 };
  }
}

/** Told when it begins and when it is over. */
function judge(one: Watched, rule: IdleRule, mean: number | undefined): void {
  const isIdle = mean !== undefined;
  if (isIdle === one.isIdle) return;
  one.isIdle = isIdle;
  one.started.tellIdle(isIdle ? newsOf(rule, mean) : undefined);
}

const usesGpus = ({ order }: Started): boolean => order.devices.some(({ kind }) => kind === 'gpu');

function newsOf({ forMs, belowPercent, action }: IdleRule, mean: number): NonNullable<Idle> {
  const seconds = Math.round(forMs / 1000);
  const time = seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
  const used = Math.round(mean * 10) / 10;
  const message = `${used} % used on average for ${time}, below ${belowPercent} %`;
  return { message, stop: action === 'stop' };
}

type Idle = Parameters<Started['tellIdle']>[0];
