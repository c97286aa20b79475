/** A host: the physical machine behind workers, with a reputation that outlives them. */

export const HOST_VERDICTS = ['none', 'blocked', 'allowed'] as const;
export type HostVerdict = (typeof HOST_VERDICTS)[number];

export interface Host {
  /** The pool's provider and the name it gives the machine: what two pools share, they share. */
  id: string;
  pool: string;
  name: string;
  /** Said by an operator; it holds until it is cleared. */
  verdict: HostVerdict;
  /** How bad it is, decayed: one fault of the machine adds 1. */
  penalty: number;
  penaltyAtMs: number;
  faults: number;
  /** Attempts that ended without a fault of the machine. */
  good: number;
  /** The newest evidence against it. */
  evidence: string;
  lastFaultAtMs: number | null;
  lastSeenAtMs: number;
  version: number;
}
