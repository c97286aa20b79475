/**
 * For whom and for which services a job gets tokens. What is kept is who and where; a token itself
 * is minted when an attempt needs it, and kept by nobody but the attempt.
 */
import type { JobId } from './ids.ts';

export interface Downstream {
  /** Who submitted the job, as the issuer of the caller's token names people. */
  issuer: string;
  subject: string;
  /** By their names in the settings' section `exchange`. */
  audiences: string[];
  /** Refresh tokens, readable only with the master key; null where there are none. */
  sealed: string | null;
}

export interface JobDownstream extends Downstream {
  job: JobId;
  tenant: string;
}

/** A service for which no token could be had, and why: for a person. */
export interface AudienceRefusal {
  audience: string;
  reason: string;
}

/** As a gateway hands it over with a submission. */
export interface SubmittedDownstream extends Downstream {
  /** Services the jobs go on without. Told in their events. */
  refused: AudienceRefusal[];
}
