/** What a pool says of its ssh provider. */
import { z } from 'zod';

export const sshPool = z.strictObject({});
