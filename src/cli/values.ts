/** Single values of a flag or of a job file, where YAML may have read more into them. */
import { UsageError } from './args.ts';

/** YAML reads `3` and `true` as numbers and booleans where a person meant text. */
export function asText(value: unknown, what: string): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new UsageError(`${what} is not a single value`);
}

export function asBoolean(value: unknown, what: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new UsageError(`${what} is not true or false`);
}
