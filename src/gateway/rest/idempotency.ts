/** Idempotency-Key: the controller decides what it means, the gateway only checks its form. */
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';

/** Set on an answer that created nothing, because its key was known. */
export const REPLAYED = 'idempotency-replayed';
export const IDEMPOTENCY_KEY_LENGTH = 255;
const PRINTABLE = /^[\x20-\x7e]{1,255}$/;

/** For the description only: checked by hand, as a header schema would look at every header. */
export const idempotencyHeader = z.object({
  'idempotency-key': z
    .string()
    .max(IDEMPOTENCY_KEY_LENGTH)
    .optional()
    .describe('Kept 24 h. The same key with the same body gives the same jobs, with another 409.'),
});

export function idempotencyKeyOf(headers: {
  'idempotency-key'?: string | undefined;
}): string | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (PRINTABLE.test(key)) return key;
  const detail = `Idempotency-Key is 1 to ${IDEMPOTENCY_KEY_LENGTH} printable ASCII characters`;
  throw new DroverError('INVALID_ARGUMENT', detail, { hint: 'A UUID does well.' });
}
