/** The provider that a pool's settings name. */
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { providerOf, type PoolSettings, type ProviderKind } from '../model/poolSettings.ts';
import type { Provider } from './contract.ts';
import { createSaladProvider } from './salad/provider.ts';

export interface OpenedProvider {
  kind: ProviderKind;
  provider: Provider;
  /** How long it lets an instance live at most; 0: for ever. */
  longestMs: number;
  /** One user's work never runs in another's allocation. */
  perUser: boolean;
}

export interface ProviderOptions {
  pool: string;
  settings: PoolSettings;
  /** Machines of other clusters in the same place are none of ours. */
  clusterId: string;
  clock: Clock;
  log: Log;
}

/** Undefined: agents join the pool by themselves. */
export function openProvider(options: ProviderOptions): OpenedProvider | undefined {
  const kind = providerOf(options.settings);
  if (kind === undefined) return undefined;
  const { salad } = options.settings;
  if (salad) {
    const provider = createSaladProvider({ ...options, settings: salad, env: process.env });
    return { kind, provider, longestMs: 0, perUser: false };
  }
  throw new Error(`no provider ${kind}`);
}
