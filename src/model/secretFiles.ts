/** Secrets among the settings: refused in the config file, read from files of their own. */
import { DroverError } from '../lib/errors.ts';
import type { Settings } from './settings.ts';

type ReadFile = (path: string) => string;

/** Whoever guesses the secret may call as anybody. */
export const SHORTEST_SECRET = 16;

/** A password in a config file ends up in a repository. */
export function refuseSecret(setting: string, value: unknown): string | undefined {
  if (setting === 'grpc.apiSecret' && value !== '') {
    return 'is a secret; give it as DROVER_GRPC_API_SECRET or name a file by grpc.apiSecretFile';
  }
  if (setting === 'blobs.secretAccessKey' && value !== '') {
    return 'is a secret; give it as DROVER_BLOBS_SECRET_ACCESS_KEY or by blobs.secretAccessKeyFile';
  }
  if (setting === 'secrets.infisicalClientSecret' && value !== '') {
    const name = 'DROVER_SECRETS_INFISICAL_CLIENT_SECRET';
    return `is a secret; give it as ${name} or by secrets.infisicalClientSecretFile`;
  }
  if (setting === 'exchange.clientSecret' && value !== '') {
    return 'is a secret; give it as DROVER_EXCHANGE_CLIENT_SECRET or by exchange.clientSecretFile';
  }
  if (setting !== 'store.url' || typeof value !== 'string') return undefined;
  if (!/^[a-z]+:\/\/[^/@]*:[^/@]+@/.test(value) && !/[?&]password=/.test(value)) return undefined;
  return 'holds a password; give it as DROVER_STORE_URL or in a file named by store.urlFile';
}

/** The settings with every secret that a setting names a file for. */
export function readSecrets(settings: Settings, readFile: ReadFile): Settings {
  const { store, grpc, blobs, secrets, exchange } = settings;
  const exchangeFile = exchange.clientSecretFile;
  const exchangeSecret = secretOf('exchange.clientSecretFile', exchangeFile, readFile);
  const clientFile = secrets.infisicalClientSecretFile;
  const client = secretOf('secrets.infisicalClientSecretFile', clientFile, readFile);
  const url = secretOf('store.urlFile', store.urlFile, readFile) ?? store.url;
  const key = secretOf('blobs.secretAccessKeyFile', blobs.secretAccessKeyFile, readFile);
  return {
    ...settings,
    store: { ...store, url },
    grpc: { ...grpc, apiSecret: apiSecret(grpc, readFile) },
    secrets: {
      ...secrets,
      infisicalClientSecret: client ?? secrets.infisicalClientSecret,
    },
    exchange: { ...exchange, clientSecret: exchangeSecret ?? exchange.clientSecret },
    blobs: { ...blobs, secretAccessKey: key ?? blobs.secretAccessKey },
  };
}

function apiSecret(grpc: Settings['grpc'], readFile: ReadFile): string {
  const secret = secretOf('grpc.apiSecretFile', grpc.apiSecretFile, readFile);
  if (secret === undefined) return grpc.apiSecret;
  if (secret.length >= SHORTEST_SECRET) return secret;
  const detail = `grpc.apiSecretFile (${grpc.apiSecretFile}) holds too short a secret`;
  const hint = `Write one of at least ${SHORTEST_SECRET} characters: openssl rand -hex 32`;
  throw new DroverError('INVALID_ARGUMENT', detail, { hint });
}

/** Undefined where no file is named. */
function secretOf(setting: string, path: string, readFile: ReadFile): string | undefined {
  if (!path) return undefined;
  try {
    return readFile(path).trim();
  } catch (error) {
    const detail = `${setting} names ${path}, which cannot be read`;
    const hint = 'Check that it exists and that this user may read it.';
    throw new DroverError('INVALID_ARGUMENT', detail, { hint, cause: error });
  }
}
