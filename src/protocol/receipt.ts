/** REST schema of a receipt: where a job ran, what it cost, what was lost, what to do next. */
import { z } from 'zod';
import { JOB_STATES } from '../model/job.ts';
import { FAULTS } from '../model/receipt.ts';

const ms = z.number();

export const receiptView = z
  .object({
    job: z.string(),
    name: z.string(),
    state: z.enum(JOB_STATES),
    /** How it ended. */
    reason: z.string(),
    exitCode: z.int().nullable(),
    createdAtMs: ms,
    startedAtMs: ms.nullable(),
    /** Null: it has not ended, and all below is as of now. */
    endedAtMs: ms.nullable(),
    tasks: z.object({ total: z.int(), succeeded: z.int() }),
    attempts: z.int(),
    /** Where its attempts were, the longest first. */
    ranOn: z.array(
      z.object({
        worker: z.string(),
        name: z.string(),
        pool: z.string(),
        /** `2 x A100`; empty: none. */
        devices: z.string(),
        attempts: z.int(),
        ms,
      }),
    ),
    /** Of all tasks together. */
    time: z.object({ waitingMs: ms, startingMs: ms, runningMs: ms, stoppingMs: ms }),
    /** Time that led to nothing, by whose fault it was, the worst first. */
    lost: z.array(z.object({ fault: z.enum(FAULTS), attempts: z.int(), ms, why: z.string() })),
    /** Money in millionths. */
    costMicros: z.int(),
    deviceMs: z.int(),
    /** How many were stored. */
    checkpoints: z.int(),
    /** Attempts that went on from one. */
    resumes: z.int(),
    /** Null: nobody measured it. */
    peakMemoryBytes: z.int().nullable(),
    /** False: it has more attempts or events than were looked at. */
    complete: z.boolean(),
    /** What to do, the most promising first. */
    next: z.array(z.string()),
    /** All of it in one line, and in sentences. */
    line: z.string(),
    sentences: z.array(z.string()),
  })
  .meta({ id: 'Receipt' });
export type ReceiptView = z.infer<typeof receiptView>;
