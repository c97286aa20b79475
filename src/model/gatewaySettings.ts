/** The settings of a gateway that stands apart from its coordinator. */
import { z } from 'zod';
import { duration, SECOND, section, text } from './settingKinds.ts';

export const gatewaySettings = section({
  cache: z.boolean().default(true),
  cacheFile: text.default(''),
  cacheAfterMs: duration.default(2 * SECOND),
});
