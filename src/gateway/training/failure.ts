/** Where the training surface lies, and the shape of what goes wrong there. */
import { z } from 'zod';
import type { Problem } from '../problem.ts';

export const TRAINING_PREFIX = '/v1/modules/scaimind';

export const trainingFailure = z
  .object({
    success: z.literal(false),
    error: z.object({
      code: z.string(),
      message: z.string(),
      request_id: z.string(),
      hint: z.string().optional(),
      violations: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    }),
  })
  .meta({ id: 'TrainingFailure' });

export function isTrainingUrl(url: string): boolean {
  return url.startsWith(TRAINING_PREFIX) && /^([/?]|$)/.test(url.slice(TRAINING_PREFIX.length));
}

/** The same codes, words and statuses as everywhere, in this surface's envelope. */
export function trainingFailureOf(problem: Problem): z.infer<typeof trainingFailure> {
  const { code, detail: message, requestId, hint, violations } = problem;
  const more = { ...(hint !== undefined && { hint }), ...(violations && { violations }) };
  return { success: false, error: { code, message, request_id: requestId, ...more } };
}
