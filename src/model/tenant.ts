/** Tenants and their users. Neither needs to be made first: who was never changed has no row. */

/** What becomes of the jobs of somebody who leaves. */
export const LEAVING_JOBS = ['keep', 'cancel'] as const;
export type LeavingJobs = (typeof LEAVING_JOBS)[number];

export interface Tenant {
  name: string;
  /** Nobody of it comes in, and nothing of it is placed, while it is suspended. */
  suspended: boolean;
  note: string;
  createdAtMs: number;
  version: number;
}

export interface User {
  tenant: string;
  name: string;
  /** Roles that are given to him beside those of his token or issuer. */
  roles: string[];
  /** He is gone: no token of his and no word of an issuer lets him in. */
  leftAtMs: number | null;
  version: number;
}
