/** What a tenant, or one of its users, may use: a weight in the queue, quotas and money. */

export const BUDGET_MODES = ['soft', 'hard'] as const;
export const AT_LIMIT = ['finish', 'stop'] as const;

/** Keyed (tenant, user); an empty user means the whole tenant. Null limits nothing. */
export interface Budget {
  tenant: string;
  user: string;
  /** Twice the weight, twice the share. */
  weight: number;
  /** Thousandths of devices held at once. */
  deviceMillis: number | null;
  deviceHoursPerDay: number | null;
  deviceHoursPerMonth: number | null;
  /** Money in millionths. */
  microsPerDay: number | null;
  microsPerMonth: number | null;
  /** Soft: over it, work waits behind everybody else's. Hard: over it, work is held. */
  mode: (typeof BUDGET_MODES)[number];
  /** What happens to running work when money or hours are used up. */
  atLimit: (typeof AT_LIMIT)[number];
  version: number;
}
