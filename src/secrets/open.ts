/** The sources an operator has configured, and asking them in turn. */
import { DroverError } from '../lib/errors.ts';
import type { SecretSettings } from '../model/secretSettings.ts';
import type { SecretSource } from './contract.ts';
import { environmentSecrets } from './environment.ts';
import { fileSecrets } from './files.ts';
import { infisicalSecrets, type InfisicalOptions } from './infisical.ts';

export function openSecrets(
  settings: SecretSettings,
  env: Readonly<Record<string, string | undefined>>,
): SecretSource[] {
  const { environmentPrefix, folder } = settings;
  return [
    ...(environmentPrefix ? [environmentSecrets(environmentPrefix, env)] : []),
    ...(folder ? [fileSecrets(folder)] : []),
    ...(settings.infisicalProject ? [infisicalSecrets(infisicalOptions(settings))] : []),
  ];
}

function infisicalOptions(settings: SecretSettings): InfisicalOptions {
  return {
    siteUrl: settings.infisicalUrl,
    projectId: settings.infisicalProject,
    environment: settings.infisicalEnvironment,
    path: settings.infisicalPath,
    clientId: settings.infisicalClientId,
    clientSecret: settings.infisicalClientSecret,
  };
}

/** The first source that has it. A source that cannot be asked might have it: that is said. */
export async function findSecret(
  sources: readonly SecretSource[],
  tenant: string,
  secret: string,
): Promise<string | undefined> {
  for (const source of sources) {
    try {
      const value = await source.get(tenant, secret);
      if (value !== undefined) return value;
    } catch (cause) {
      const detail = `${source.name} could not be asked for the secret "${secret}"`;
      throw new DroverError('UNAVAILABLE', detail, { cause });
    }
  }
  return undefined;
}
