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
    infisicalUrl: text.default('https://app.infisical.com'),
    /** The project's id; empty: Infisical is not used. */
    infisicalProject: text.default(''),
    infisicalEnvironment: text.default('prod'),
    infisicalPath: text.default('/{tenant}'),
    infisicalClientId: text.default(''),
    infisicalClientSecret: text.default(''),
    infisicalClientSecretFile: text.default(''),
  })
  .prefault({});

export type SecretSettings = z.output<typeof secretSettings>;

export function checkSecrets(
  secrets: SecretSettings,
  fail: (setting: string, message: string) => void,
): void {
  if (!secrets.infisicalProject) return;
  if (!secrets.infisicalClientId) {
    fail('secrets.infisicalClientId', 'is needed with secrets.infisicalProject');
  }
  if (!secrets.infisicalClientSecret === !secrets.infisicalClientSecretFile) {
    const ways = 'DROVER_SECRETS_INFISICAL_CLIENT_SECRET or in a file, not both';
    fail('secrets.infisicalClientSecretFile', `Infisical needs the secret as ${ways}`);
  }
}
