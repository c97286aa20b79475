/** Whose fault it was that time of a job led to nothing. */
export const FAULTS = [
  'host',
  'memory',
  'preemption',
  'time-limit',
  'start',
  'gang',
  'command',
  'cancel',
] as const;
export type Fault = (typeof FAULTS)[number];
