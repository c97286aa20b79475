/** What is wrong with a machine, as its agent sees it. */

/** warn: shown. drain: no new work until it is gone. */
export const HEALTH_SEVERITIES = ['warn', 'drain'] as const;
export type HealthSeverity = (typeof HEALTH_SEVERITIES)[number];

/** The check of a machine that was told of its own end: no fault of its host. */
export const ENDING = 'ending';

export interface HealthProblem {
  /** Which check found it: `devices`, `ecc`, `xid`, `disk`, `clock`, `command`, … */
  check: string;
  severity: HealthSeverity;
  /** For a person: what was seen, and where. */
  message: string;
  /** Index of the device it is about. */
  device?: number | undefined;
}
