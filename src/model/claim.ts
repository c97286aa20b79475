/** A claim: what an owner holds on a worker. The only truth about capacity. */
import type { AttemptUid, WorkerId } from './ids.ts';

export const CLAIM_STATES = ['HELD', 'RELEASING', 'NOMINATED'] as const;
export type ClaimState = (typeof CLAIM_STATES)[number];

export interface Claim {
  owner: AttemptUid;
  worker: WorkerId;
  cpuMillis: number;
  memoryBytes: number;
  /** Indices of the devices held. */
  devices: number[];
  /** Thousandths of each of those devices. */
  share: number;
  ports: number[];
  state: ClaimState;
}
