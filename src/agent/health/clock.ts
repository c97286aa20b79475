/**
 * Whether the machine's clock is right, by the server's, and steady, by its own count since the
 * boot. No lease depends on it, but certificates, tokens and build tools of jobs do. Where the
 * server's own clock is seen to be set, it is not for the machines to stop.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Check, Finding } from './check.ts';

/** Tools begin to notice. */
const CLOCK_WARN_MS = 10_000;
/** Tokens and signed requests are refused. */
const CLOCK_DRAIN_MS = 5 * 60_000;
/** Between two looks; what corrects a clock gently stays far below. */
const CLOCK_STEP_MS = 5000;
/** How long a step is told. */
export const CLOCK_STEP_SHOWN_MS = 10 * 60_000;
/** Headers are cut to whole seconds: this is what they lack on average. */
const HEADER_MS = 500;

export interface ClockCheck {
  check: Check;
  /** A reply came, with this `Date` header. */
  heard: (header: string) => void;
}

export function createClockCheck(clock: Clock): ClockCheck {
  let header = '';
  /** The server's wall clock less our count since the boot; undefined: not heard of yet. */
  let serverOffsetMs: number | undefined;
  let serverWasSet = false;
  let offsetMs = clock.now() - clock.bootMs();
  let step: { byMs: number; bootMs: number } | undefined;

  function heard(said: string): void {
    // It changes once a second: the rest of the replies cost a comparison.
    if (said === header) return;
    header = said;
    const heardMs = Date.parse(said) + HEADER_MS - clock.bootMs();
    if (Number.isNaN(heardMs)) return;
    // As well when another server answers now, with a clock of its own.
    if (isStep(heardMs - (serverOffsetMs ?? heardMs))) serverWasSet = true;
    serverOffsetMs = heardMs;
  }

  function steps(): Finding[] {
    const before = offsetMs;
    offsetMs = clock.now() - clock.bootMs();
    const byMs = offsetMs - before;
    if (isStep(byMs)) step = { byMs, bootMs: clock.bootMs() };
    if (!step || clock.bootMs() - step.bootMs > CLOCK_STEP_SHOWN_MS) return [];
    const way = step.byMs > 0 ? 'forward' : 'back';
    const message = `the clock was set ${way} by ${seconds(step.byMs)}`;
    return [finding(`step ${step.bootMs}`, 'warn', message)];
  }

  function difference(): Finding[] {
    if (serverOffsetMs === undefined) return [];
    const behindMs = serverOffsetMs - offsetMs;
    const apartMs = Math.abs(behindMs);
    if (apartMs < CLOCK_WARN_MS) return [];
    const way = behindMs > 0 ? 'behind' : 'ahead of';
    const known = serverWasSet ? ', which was itself set meanwhile' : '';
    const message = `the clock is ${seconds(apartMs)} ${way} the server's${known}`;
    const drains = apartMs >= CLOCK_DRAIN_MS && !serverWasSet;
    return [finding(`apart ${way}`, drains ? 'drain' : 'warn', message)];
  }

  const look = async (): Promise<Finding[]> => [...steps(), ...difference()];
  return { check: { name: 'clock', around: 'every', look }, heard };
}

const isStep = (byMs: number): boolean => Math.abs(byMs) >= CLOCK_STEP_MS;

function finding(key: string, severity: Finding['severity'], message: string): Finding {
  return { check: 'clock', key, severity, message, blames: 'nobody' };
}

const seconds = (ms: number): string => `${Math.round(Math.abs(ms) / 1000)} s`;
