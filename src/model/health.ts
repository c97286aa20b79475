/** What is wrong with a machine, as its agent sees it. */

/** warn: shown. drain: no new work until it is gone. */
export const HEALTH_SEVERITIES = ['warn', 'drain'] as const;
export type HealthSeverity = (typeof HEALTH_SEVERITIES)[number];

/** Those an agent has; a younger one may have more. */
export const HEALTH_CHECKS = [
  'devices',
  'ecc',
  'throttle',
  'xid',
  'disk',
  'memory',
  'clock',
  'command',
] as const;
export type HealthCheck = (typeof HEALTH_CHECKS)[number];

/** The check of a machine that was told of its own end: no fault of its host. */
export const ENDING = 'ending';

export interface HealthProblem {
  /** Which check found it: one of HEALTH_CHECKS, or ENDING. */
  check: string;
  severity: HealthSeverity;
  /** For a person: what was seen, and where. */
  message: string;
  /** Index of the device it is about. */
  device?: number | undefined;
}
