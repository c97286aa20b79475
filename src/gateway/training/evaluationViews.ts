/** How evaluations look: their job, what they look at, and the scores they left. */
import { z } from 'zod';
import { JOB_STATES } from '../../model/job.ts';
import type { JobView } from '../../protocol/jobs.ts';
import { block, EVALUATION_NAME, objectIn } from './blocks.ts';
import { summaryOf } from './views.ts';

const time = z.string().meta({ format: 'date-time' });

/** What it looks at, as its annotation keeps it. */
const source = z.object({
  job_id: z.string().describe('The training'),
  task: z.string(),
  checkpoint: z.int(),
  manifest: z.string().describe("The blob that lists the checkpoint's files"),
  template: z.string(),
  config: block,
});

const summary = source.extend({
  evaluation_id: z.string().describe('Also the id of its job'),
  status: z.enum(JOB_STATES),
  reason: z.string(),
  error: z.string().nullable(),
  user_id: z.string(),
  created_at: time,
  started_at: time.nullable(),
  ended_at: time.nullable(),
});

export const evaluationSummary = summary.meta({ id: 'EvaluationSummary' });
export const evaluation = summary
  .extend({
    scores: block.nullable().describe('scores.json of its result; null until it is there'),
    scores_error: z.string().nullable().describe('Why there are no scores of one that has ended'),
  })
  .meta({ id: 'Evaluation' });

/** Null where it is none of ours: anybody may name a job so. */
export function evaluationSummaryOf(job: JobView): z.infer<typeof evaluationSummary> | null {
  const kept = source.safeParse(objectIn(job.spec?.annotations?.['evaluation']));
  if (job.name !== EVALUATION_NAME || !kept.success) return null;
  const { status, reason, error, user_id, ...others } = summaryOf(job);
  const { created_at, started_at, ended_at } = others;
  return {
    ...{ evaluation_id: job.id, ...kept.data, status, reason, error, user_id },
    ...{ created_at, started_at, ended_at },
  };
}
