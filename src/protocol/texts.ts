/** Schemas of plain values that several parts of a submission share. */
import { z } from 'zod';

export const DAY_MS = 86_400_000;
export const durationMs = z
  .int()
  .min(0)
  .max(3650 * DAY_MS);

export const NOT_CLEAN = 'holds a NUL or half a character';
/** No NUL and no lone surrogate: neither survives argv, the environment or a text column. */
export const isClean = (text: string): boolean => !text.includes('\0') && text.isWellFormed();
/**
 * What a machine says of its work is kept, whatever bytes a program wrote: no database takes a NUL,
 * and an agent whose word is refused would repeat it for ever.
 */
export const storable = (text: string): string =>
  isClean(text) ? text : text.toWellFormed().replaceAll('\0', '\uFFFD');
/** The NUL as a pattern, which the description can say; half a character it cannot. */
const NO_NUL = new RegExp(String.raw`^[^\u0000]*$`);
export const clean = (limit: number) =>
  z
    .string()
    .max(limit)
    .regex(NO_NUL, NOT_CLEAN)
    .refine((text) => text.isWellFormed(), NOT_CLEAN);
