/** What a tenant, or one of its users (an empty user is the whole tenant), has used. */

/** Use over time, halved every half-life: resource times milliseconds. */
export interface Usage {
  cpuMillis: number;
  memoryMiB: number;
  deviceMillis: number;
  asOfMs: number;
}

export interface Account {
  tenant: string;
  user: string;
  usage: Usage;
  /** The day (since 1970, UTC) and month the sums beside them are of. */
  day: number;
  dayMicros: number;
  dayDeviceMs: number;
  month: number;
  monthMicros: number;
  monthDeviceMs: number;
  /** Levels of its budget that were told in this day and month: `day-money:80 month-hours:50`. */
  told: string;
  version: number;
}
