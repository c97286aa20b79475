/** REST schema of a capsule: all it takes to know what a job ran, and to run it again. */
import { z } from 'zod';
import { ATTEMPT_STATES, END_CAUSES } from '../model/attempt.ts';
import { JOB_STATES } from '../model/job.ts';
import { workerView } from './fleet.ts';
import { jobSpec } from './jobSpec.ts';

/** Tasks a capsule tells of; those of an array hardly differ. */
export const CAPSULE_TASKS = 100;

export const capsuleView = z
  .object({
    job: z.string(),
    tenant: z.string(),
    owner: z.string(),
    createdAtMs: z.number(),
    state: z.enum(JOB_STATES),
    exitCode: z.int().nullable(),
    /** Exactly what runs: data sets as the hashes they had, code as its manifest and commit. */
    spec: jobSpec,
    /** The newest attempt of each task, of the first hundred. */
    attempts: z.array(
      z.object({
        task: z.string(),
        n: z.int(),
        worker: z.string(),
        state: z.enum(ATTEMPT_STATES),
        cause: z.enum(END_CAUSES).nullable(),
        exitCode: z.int().nullable(),
        /** As its agent found them: inputs with their hashes, environment, driver, devices. */
        facts: z.record(z.string(), z.string()),
        result: z.string().nullable(),
        /** Its worker, while that is known and the caller may see it. */
        machine: workerView
          .pick({ name: true, agentVersion: true, attributes: true, devices: true })
          .nullable(),
      }),
    ),
  })
  .meta({ id: 'Capsule' });
export type CapsuleView = z.infer<typeof capsuleView>;
