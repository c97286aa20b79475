/** The provider that a pool's settings name. */
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { providerOf, type PoolSettings, type ProviderKind } from '../model/poolSettings.ts';
import { systemRandom } from '../lib/random.ts';
import type { MachineRef, Provider } from './contract.ts';
import { createSaladProvider } from './salad/provider.ts';
import { createSlurmProvider } from './slurm/provider.ts';
import type { openSlurmSites } from './slurm/site.ts';
import { createSshProvider } from './ssh/provider.ts';

export interface OpenedProvider {
  kind: ProviderKind;
  provider: Provider;
  /** How long it lets an instance live at most; 0: for ever. */
  longestMs: number;
  /** One user's work never runs in another's allocation. */
  perUser: boolean;
  /** What its agents say that they are on unless the pool says otherwise; empty: nothing. */
  network: string;
}

export interface ProviderOptions {
  pool: string;
  settings: PoolSettings;
  /** Machines of other clusters in the same place are none of ours. */
  clusterId: string;
  slurmSites: ReturnType<typeof openSlurmSites>;
  /** The agent that launched machines get from us. */
  agentVersion: string;
  /** What the store knows of the pool's machines that are not over. */
  remembered: readonly MachineRef[];
  clock: Clock;
  log: Log;
}

/** Undefined: agents join the pool by themselves. */
export function openProvider(options: ProviderOptions): OpenedProvider | undefined {
  const kind = providerOf(options.settings);
  if (kind === undefined) return undefined;
  const { salad, slurm, ssh } = options.settings;
  if (salad) {
    const provider = createSaladProvider({ ...options, settings: salad, env: process.env });
    return { kind, provider, longestMs: 0, perUser: false, network: '' };
  }
  if (slurm) return openSlurm(options, slurm);
  if (ssh) {
    const provider = createSshProvider({ ...options, settings: ssh, random: systemRandom });
    return { kind, provider, longestMs: 0, perUser: false, network: '' };
  }
  throw new Error(`no provider ${kind}`);
}

function openSlurm(
  { pool, slurmSites, clusterId, clock, log }: ProviderOptions,
  settings: NonNullable<PoolSettings['slurm']>,
): OpenedProvider {
  const site = slurmSites.site(settings.site);
  if (!site) throw new Error(`pool ${pool}: there is no site ${settings.site}`);
  return {
    kind: 'slurm',
    provider: createSlurmProvider({ pool, settings, site, clusterId, clock, log }),
    longestMs: settings.timeLimitMs,
    perUser: settings.userMap === 'submit-as-user',
    network: `slurm:${settings.site}`,
  };
}
