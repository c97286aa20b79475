/** What a pool's instances have cost: in this hour, day and month, and in all. */

export interface PoolSpending {
  pool: string;
  /** Starts of the periods that the sums are of. */
  hourAtMs: number;
  dayAtMs: number;
  monthAtMs: number;
  hourMicros: number;
  dayMicros: number;
  monthMicros: number;
  totalMicros: number;
  version: number;
}
