/** Where jobs' secrets come from, as an operator configures it. */
import { z } from 'zod';

const text = z.string().max(4096);

export const secretSettings = z
  .strictObject({
    /** Variables that begin so are secrets of the tenant `default`; empty: none are. */
    environmentPrefix: z
      .string()
      .max(100)
      .regex(/^[A-Za-z0-9_]*$/, 'is the beginning of a variable name')
      .default(''),
    /** FOLDER/TENANT/NAME; empty: no files. */
    folder: text.default(''),
    infisical: z
      .strictObject({
        siteUrl: text.default('https://app.infisical.com'),
        /** Empty: it is not used. */
        projectId: text.default(''),
        environment: text.default('prod'),
        path: text.default('/{tenant}'),
        clientId: text.default(''),
        clientSecret: text.default(''),
        clientSecretFile: text.default(''),
      })
      .prefault({}),
  })
  .prefault({});

export type SecretSettings = z.output<typeof secretSettings>;

export function checkSecrets(
  { infisical }: SecretSettings,
  fail: (setting: string, message: string) => void,
): void {
  if (!infisical.projectId) return;
  if (!infisical.clientId) fail('secrets.infisical.clientId', 'is needed with a projectId');
  if (!infisical.clientSecret === !infisical.clientSecretFile) {
    const ways = 'DROVER_SECRETS_INFISICAL_CLIENT_SECRET or in a file, not both';
    fail('secrets.infisical.clientSecretFile', `Infisical needs the secret as ${ways}`);
  }
}
