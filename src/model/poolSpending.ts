/** What a pool's instances have cost: in this hour, day and month, and in all. */

export interface PoolSpending {
  pool: string;
  /** The periods that the sums are of, counted from 1970. */
  hour: number;
  day: number;
  month: number;
  hourMicros: number;
  dayMicros: number;
  monthMicros: number;
  totalMicros: number;
  version: number;
}
