/** What a pool says of its slurm provider. */
import { z } from 'zod';

export const slurmPool = z.strictObject({});
