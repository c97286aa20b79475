/** The section `idleDevices`: for jobs that have no rule of their own on devices that do nothing. */
import { z } from 'zod';
import { IDLE_ACTIONS } from './jobParts.ts';

const LONGEST_MS = 2 ** 31 - 1;

export const idleSettings = z
  .strictObject({
    belowPercent: z.number().min(0).max(100).default(5),
    forMs: z.int().min(1000).max(LONGEST_MS).default(1_800_000),
    action: z.enum(['none', ...IDLE_ACTIONS]).default('warn'),
  })
  .prefault({});
