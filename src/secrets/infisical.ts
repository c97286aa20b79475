/** Secrets from Infisical, by its own SDK, which is loaded only where it is configured. */
import { DroverError } from '../lib/errors.ts';
import type { SecretSource } from './contract.ts';

/** Not among our packages: it brings more than all of them. */
const SDK: string = '@infisical/sdk';

export interface InfisicalOptions {
  siteUrl: string;
  projectId: string;
  environment: string;
  /** `{tenant}` in it stands for the tenant's name. */
  path: string;
  clientId: string;
  clientSecret: string;
}

/** What we use of it. Its types come with it, but it need not be installed. */
interface Sdk {
  InfisicalSDK: new (options: { siteUrl: string }) => InfisicalClient;
}

interface InfisicalClient {
  auth(): {
    universalAuth: { login(login: { clientId: string; clientSecret: string }): Promise<unknown> };
  };
  secrets(): {
    getSecret(query: {
      secretName: string;
      projectId: string;
      environment: string;
      secretPath: string;
    }): Promise<{ secretValue: string }>;
  };
}

export function infisicalSecrets(
  options: InfisicalOptions,
  load: () => Promise<unknown> = () => import(SDK),
): SecretSource {
  let signedIn: Promise<InfisicalClient> | null = null;

  async function signIn(): Promise<InfisicalClient> {
    const { clientId, clientSecret, siteUrl } = options;
    const sdk = (await load().catch(notInstalled)) as Sdk;
    const client = new sdk.InfisicalSDK({ siteUrl });
    await client.auth().universalAuth.login({ clientId, clientSecret });
    return client;
  }

  /** A login that failed, or that has run out, is made anew for the next one who asks. */
  async function client(): Promise<InfisicalClient> {
    signedIn ??= signIn();
    try {
      return await signedIn;
    } catch (error) {
      signedIn = null;
      throw error;
    }
  }

  async function ask(tenant: string, secret: string): Promise<string | undefined> {
    const { projectId, environment, path } = options;
    const secretPath = path.replaceAll('{tenant}', tenant);
    const query = { secretName: secret, projectId, environment, secretPath };
    try {
      return (await (await client()).secrets().getSecret(query)).secretValue;
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw error;
    }
  }

  return {
    name: `Infisical at ${options.siteUrl}`,
    async get(tenant, secret) {
      if (!/^[\w-]+$/.test(tenant)) return undefined;
      try {
        return await ask(tenant, secret);
      } catch (error) {
        if (statusOf(error) !== 401) throw error;
        signedIn = null;
        return ask(tenant, secret);
      }
    },
  };
}

function notInstalled(cause: unknown): never {
  throw new DroverError('UNAVAILABLE', 'the package @infisical/sdk is not installed', {
    hint: 'install it beside Drover: npm install @infisical/sdk',
    cause,
  });
}

/** The SDK gives the status in its error's text, or as a field, by version. */
function statusOf(error: unknown): number | undefined {
  const { statusCode, message = '' } = error as { statusCode?: number; message?: string };
  return statusCode ?? Number(/\bStatus(?:Code)?=(\d{3})\b/i.exec(message)?.[1]);
}
