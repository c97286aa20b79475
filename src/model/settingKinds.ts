/** Kinds of values that several sections of the settings have. */
import { z } from 'zod';

export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
/** No timer of Node counts further than this many milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
export const duration = z.int().min(1).max(LONGEST_TIMER_MS);
export const period = z.int().min(10).max(HOUR);
export const bytes = z.int().min(1);
export const port = z.int().min(0).max(65_535);
export const text = z.string().max(4096);

/** Prefaulted, so that a section left out has its defaults. */
export const section = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  z.strictObject(shape).prefault({} as never);
