/** Token exchange as configured: for gateways, which submit, and for controllers, which mint. */
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import { exchanges, type ExchangeSettings } from '../model/exchangeSettings.ts';
import { clientCredential, subjectAssertion } from './assertions.ts';
import { createTokenExchange } from './client.ts';
import { createMinter, type Minter } from './mint.ts';
import { readMasterKeys } from './seal.ts';
import { readSigningKey } from './signedJwt.ts';
import { createAccompany, type Accompany } from './submission.ts';
import { tokenUrlOf } from './tokenUrl.ts';

export interface OpenExchangeOptions {
  /** Returns the file's text; throws as `readFileSync` does. */
  readFile: (path: string) => string;
  clock: Clock;
  random: Random;
  log: Log;
}

/** Undefined where no audience is configured. Throws where a key cannot be read. */
export function openExchange(
  settings: ExchangeSettings,
  options: OpenExchangeOptions,
): { accompany: Accompany; minter: Minter } | undefined {
  if (!exchanges(settings)) return undefined;
  const { clock, random, log } = options;
  const { keyFile, keyId, masterKeyFile, timeoutMs } = settings;
  const keyText = read('exchange.keyFile', keyFile, options);
  const key = keyText === null ? null : readSigningKey(keyText, keyId, keyFile);
  const masterText = read('exchange.masterKeyFile', masterKeyFile, options);
  const keys = masterText === null ? null : readMasterKeys(masterText, masterKeyFile);
  const signer = { settings, key, clock, random };
  const tokenUrl = tokenUrlOf(settings, clock);
  const credential = clientCredential(signer);
  const exchange = createTokenExchange({ tokenUrl, credential, timeoutMs, clock });
  const assertionFor = subjectAssertion(signer);
  return {
    accompany: createAccompany({ settings, exchange, keys, random, log }),
    minter: createMinter({ settings, exchange, assertionFor, keys, clock, random }),
  };
}

/** Null where no file is named. */
function read(setting: string, path: string, options: OpenExchangeOptions): string | null {
  if (!path) return null;
  try {
    return options.readFile(path);
  } catch (cause) {
    throw new DroverError('INVALID_ARGUMENT', `${setting} names ${path}, which cannot be read`, {
      hint: 'Check that it exists and that this user may read it.',
      cause,
    });
  }
}
