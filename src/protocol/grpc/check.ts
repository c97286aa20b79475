/** Checks what came over the wire with the schemas of REST and the agent protocol. */
import type { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';

const SHOWN_ISSUES = 3;

export function parse<Output>(schema: z.ZodType<Output>, value: unknown): Output {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues
    .slice(0, SHOWN_ISSUES)
    .map((issue) => `${issue.path.join('.') || 'the message'}: ${issue.message}`);
  throw new DroverError('INVALID_ARGUMENT', issues.join('; '));
}

export function notNegative(value: number, what: string): number {
  if (value < 0) throw new DroverError('INVALID_ARGUMENT', `${what} is ${value}, below 0`);
  return value;
}
