/** How training jobs are made, as an operator configures it. */
import { z } from 'zod';

export const trainingSettings = z
  .strictObject({
    /** A folder of templates; empty: the ones that Drover brings. */
    templates: z.string().max(4096).default(''),
  })
  .prefault({});

export type TrainingSettings = z.output<typeof trainingSettings>;
