/** Pools that bring machines by themselves, built from the settings. */
import type { ConnectorSites } from '../control/connectors.ts';
import type { Launching } from '../control/pools/launching.ts';
import { createJoinSecrets } from '../control/pools/joinSecrets.ts';
import type { ManagedPool } from '../control/pools/pool.ts';
import { poolPolicy } from '../core/placement/poolPolicy.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { systemRandom } from '../lib/random.ts';
import type { Instance } from '../model/instance.ts';
import type { Settings } from '../model/settings.ts';
import { AGENT_VERSION } from '../protocol/agent.ts';
import { Connectors } from '../providers/remote/connectors.ts';
import { openProvider } from '../providers/open.ts';
import { openSlurmSites } from '../providers/slurm/site.ts';

export interface Home {
  url: string;
  authorities: string;
}

export interface FleetParts {
  pools: ManagedPool[];
  launching: Launching;
  connectors: ConnectorSites;
  /** Where launched agents dial, once it is known. */
  tellHome(home: Home): void;
  /** Before the loops end: they wait for no connector, which may not reach us any more. */
  letGo(): void;
  close(): Promise<void>;
}

export interface FleetFacts {
  clusterId: string;
  /** Those of the store that are not over. */
  instances: readonly Instance[];
  clock: Clock;
  log: Log;
}

export function openFleet(
  fleet: Settings['fleet'],
  secret: string,
  { instances, ...common }: FleetFacts,
): FleetParts {
  const pools: ManagedPool[] = [];
  const connectors = new Connectors(common.clock, systemRandom);
  const parts = { ...common, connectors, random: systemRandom };
  const slurmSites = openSlurmSites(fleet.sites, parts);
  for (const [name, settings] of Object.entries(fleet.pools)) {
    const remembered = instances
      .filter(({ pool }) => pool === name)
      .map(({ id, handle }) => ({ label: id, handle }));
    const more = { remembered, agentVersion: AGENT_VERSION, slurmSites };
    const opened = openProvider({ pool: name, settings, ...more, ...common });
    if (!opened) continue;
    const scaling = { ...settings, network: settings.network || opened.network };
    pools.push({ ...opened, name, settings: scaling, policy: poolPolicy(name, settings) });
  }
  let home: Home | null = null;
  return {
    pools,
    connectors: {
      exchange: (site, exchange) => connectors.exchange(site, exchange),
      inContact: (site) => connectors.inContact(site),
      siteOf: (pool) => fleet.pools[pool]?.slurm?.site,
    },
    launching: { joinSecrets: createJoinSecrets(secret), agent: () => home },
    tellHome(told) {
      home = told;
    },
    letGo: () => connectors.close(),
    async close() {
      for (const { provider } of pools) await provider.close();
      await slurmSites.close();
    },
  };
}
