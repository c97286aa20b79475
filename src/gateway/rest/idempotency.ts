/** Idempotency-Key: the controller decides what it means, the gateway only checks its form. */
import { z } from 'zod';

/** Set on an answer that created nothing, because its key was known. */
export const REPLAYED = 'idempotency-replayed';
const IDEMPOTENCY_KEY_LENGTH = 255;
const PRINTABLE = /^[\x20-\x7e]{1,255}$/;

export const idempotencyHeader = z.object({
  'idempotency-key': z
    .string()
    .regex(PRINTABLE, `is not 1 to ${IDEMPOTENCY_KEY_LENGTH} printable ASCII characters`)
    .optional()
    .describe('Kept 24 h. The same key with the same body gives the same jobs, with another 409.'),
});
