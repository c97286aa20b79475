/** The ledger: what was charged, twice over, so that the sum of all entries is always 0. */
import type { AttemptUid } from './ids.ts';

/** Keyed (attempt, n, account): a charge that is tried again is the same charge. */
export interface LedgerEntry {
  attempt: AttemptUid;
  /** Charges of one attempt are numbered. */
  n: number;
  /** `user/TENANT/USER` pays, `pool/NAME` earns. */
  account: string;
  tenant: string;
  user: string;
  pool: string;
  /** Positive for who pays. A refund is the other way round. */
  micros: number;
  deviceMs: number;
  /** The attempt is charged up to here. */
  untilMs: number;
}
