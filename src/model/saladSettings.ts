/** What a pool says of its salad provider. */
import { z } from 'zod';

export const saladPool = z.strictObject({});
