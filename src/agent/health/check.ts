/** A check of the machine, and what it finds. */
import type { HealthCheck, HealthSeverity } from '../../model/health.ts';

export interface Finding {
  check: HealthCheck;
  /** Tells it apart from others of its check, and is the same while its numbers change. */
  key: string;
  severity: HealthSeverity;
  message: string;
  device?: number;
  /** Whose failure it explains, while it is there and drains. */
  blames: 'nobody' | 'gpu' | 'everybody';
}

export interface Check {
  name: HealthCheck;
  /** Looked at before and after every attempt, those with GPUs, or on the period only. */
  around: 'every' | 'gpu' | 'none';
  /** Without an answer for this long it hangs; left out: see `ANSWER_LIMIT_MS`. */
  limitMs?: number;
  /** All it finds now. A rejection is no news: what it found before still counts. */
  look(): Promise<Finding[]>;
}
