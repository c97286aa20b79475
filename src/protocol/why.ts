/** REST schema of an explanation: why a job waits, who is ahead, and what would let it run. */
import { z } from 'zod';
import { JOB_STATES } from '../model/job.ts';

/** At most so many jobs ahead are named; the others are counted. */
export const AHEAD_SAMPLE = 10;

export const whyView = z
  .object({
    job: z.string(),
    state: z.enum(JOB_STATES),
    /** For programs; docs/scheduling.md lists them. New ones may come. */
    code: z.string(),
    /** For a person. */
    sentence: z.string(),
    /** Workers that were passed over, counted by why. */
    workers: z.array(z.object({ reason: z.string(), count: z.int(), text: z.string() })),
    /** Among the jobs of the tenant, 1 is next; null when it is in no queue. */
    position: z.int().nullable(),
    ahead: z.int().nullable(),
    /** The first of those ahead, and what puts each there. */
    aheadSample: z
      .array(z.object({ job: z.string(), name: z.string(), rule: z.string() }))
      .max(AHEAD_SAMPLE),
    /** How the queue is ordered. */
    rule: z.string(),
    /** The quota or budget that holds it; `user` is empty where it is the whole tenant's. */
    quota: z
      .object({
        tenant: z.string(),
        user: z.string(),
        what: z.string(),
        limit: z.number(),
        used: z.number(),
      })
      .nullable(),
    predictedStartAtMs: z.number().nullable(),
    /** Changes that would let it run, the most promising first. */
    suggestions: z.array(z.string()),
    tasks: z.object({ waiting: z.int(), running: z.int() }),
    /** When the explanation was made. */
    atMs: z.number(),
  })
  .meta({ id: 'Why' });
export type WhyView = z.infer<typeof whyView>;
