/** What a user of a tenant used of a pool in one day (UTC): sums for `usage`. */
export interface UsageDay {
  day: number;
  tenant: string;
  user: string;
  pool: string;
  micros: number;
  deviceMs: number;
  cpuMs: number;
  /** Attempts that ended. */
  attempts: number;
  version: number;
}
