/** The section of the settings that says how much one caller, and all together, may ask for. */
import { z } from 'zod';
import { duration, section } from './settingKinds.ts';

/** Of something that may happen so often a second; 0: as often as it likes. */
const rate = z.int().min(0).max(1_000_000_000);
/** Of things at the same time; 0: any number. */
const count = z.int().min(0).max(1_000_000);

/** What one tenant is allowed where it differs from the others. */
const ofTenant = z.strictObject({
  requestsPerSecond: rate.optional(),
  jobsPerSecond: rate.optional(),
  calls: count.optional(),
  streams: count.optional(),
});

/**
 * The rates are above what one gateway can answer, so that whoever is alone may use all of it:
 * between several the overload rule decides. A site that wants less says so.
 */
export const limitSettings = section({
  listPage: z.int().min(1).max(500).default(500),
  tunnelStreams: z.int().min(1).max(65_535).default(256),
  rateRequestsPerTenant: rate.default(50_000),
  rateRequestsPerToken: rate.default(50_000),
  rateJobsPerTenant: rate.default(500_000),
  rateJobsPerToken: rate.default(500_000),
  rateBurstSeconds: z.number().min(0.001).max(3600).default(2),
  rateFailuresPerAddress: rate.default(5),
  callsPerTenant: count.default(1000),
  callsPerToken: count.default(1000),
  streamsPerTenant: count.default(1000),
  streamsPerToken: count.default(1000),
  callsAtOnce: z.int().min(32).max(100_000).default(1024),
  overloadMs: duration.max(60_000).default(10),
  tenants: z.record(z.string().min(1).max(100), ofTenant).default({}),
});

export type LimitSettings = z.output<typeof limitSettings>;
