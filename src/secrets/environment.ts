/** Secrets from the controller's own environment, for the tenant that owns the installation. */
import type { SecretSource } from './contract.ts';

/** Variables cannot say whose they are. */
const ENVIRONMENT_TENANT = 'default';

export function environmentSecrets(
  prefix: string,
  env: Readonly<Record<string, string | undefined>>,
): SecretSource {
  return {
    name: `the environment (${prefix}…)`,
    get: async (tenant, secret) =>
      tenant === ENVIRONMENT_TENANT ? env[`${prefix}${secret}`] : undefined,
  };
}
