/**
 * Whether the machine's clock is right, by the server's, and steady, by its own count since the
 * boot. No lease depends on it, but certificates, tokens and build tools of jobs do.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Check, Finding } from './check.ts';

/** Tools begin to notice. */
export const CLOCK_WARN_MS = 10_000;
/** Tokens and signed requests are refused. */
export const CLOCK_DRAIN_MS = 5 * 60_000;
/** Within one period; what corrects a clock gently stays far below. */
export const CLOCK_STEP_MS = 5000;
/** How long a step is told. */
export const CLOCK_STEP_SHOWN_MS = 10 * 60_000;

export interface ClockCheck {
  check: Check;
  /** A reply came, with this `Date` header. */
  heard: (header: string) => void;
}

export function createClockCheck(clock: Clock): ClockCheck {
  let heard: { header: string; bootMs: number } | undefined;
  let offsetMs = clock.now() - clock.bootMs();
  let stepped: { byMs: number; bootMs: number } | undefined;

  function steps(): Finding[] {
    const before = offsetMs;
    offsetMs = clock.now() - clock.bootMs();
    const byMs = offsetMs - before;
    if (Math.abs(byMs) >= CLOCK_STEP_MS) stepped = { byMs, bootMs: clock.bootMs() };
    if (!stepped || clock.bootMs() - stepped.bootMs > CLOCK_STEP_SHOWN_MS) return [];
    const way = stepped.byMs > 0 ? 'forward' : 'back';
    const message = `the clock was set ${way} by ${seconds(stepped.byMs)}`;
    return [finding(`step ${stepped.bootMs}`, 'warn', message)];
  }

  function difference(): Finding[] {
    if (!heard) return [];
    const serverMs = Date.parse(heard.header);
    if (Number.isNaN(serverMs)) return [];
    // A step since then shows at once, not at the next reply.
    const heardAtMs = heard.bootMs + offsetMs;
    // The header is cut to whole seconds.
    const behindMs = serverMs + 500 - heardAtMs;
    const apartMs = Math.abs(behindMs);
    if (apartMs < CLOCK_WARN_MS) return [];
    const way = behindMs > 0 ? 'behind' : 'ahead of';
    const message = `the clock is ${seconds(apartMs)} ${way} the server's`;
    return [finding(`apart ${way}`, apartMs < CLOCK_DRAIN_MS ? 'warn' : 'drain', message)];
  }

  return {
    check: { name: 'clock', around: 'every', look: async () => [...steps(), ...difference()] },
    heard(header) {
      // It changes once a second: the rest of the replies cost a comparison.
      if (heard?.header === header) return;
      heard = { header, bootMs: clock.bootMs() };
    },
  };
}

function finding(key: string, severity: Finding['severity'], message: string): Finding {
  return { check: 'clock', key, severity, message, blames: 'nobody' };
}

const seconds = (ms: number): string => `${Math.round(Math.abs(ms) / 1000)} s`;
