/** Connectors on login nodes: whoever holds a join token of a site's pool may run its commands. */
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { Connectors } from '../providers/remote/connectors.ts';
import type { State } from '../state/state.ts';
import { hashSecret } from './secrets.ts';

/** What commands wait for connectors, and where the machines of pools come from. */
export interface ConnectorSites {
  exchange: Connectors['exchange'];
  inContact: Connectors['inContact'];
  /** Undefined: the pool is at no site. */
  siteOf(pool: string): string | undefined;
}

export interface ConnectorOptions {
  state: State;
  clock: Clock;
  longPollMs: number;
  /** Absent: there is no site. */
  sites: ConnectorSites | undefined;
  /** Of all pools. */
  pools: readonly { name: string }[];
  /** A pool that could ask nobody can ask now. */
  look: (pool: string) => Promise<void>;
}

/**
 * Tokens that were computed for machines do not count: a machine has no business with what the
 * login node is told, which holds the tokens of others.
 */
export function createConnectorCalls({
  state,
  clock,
  longPollMs,
  sites,
  pools,
  look,
}: ConnectorOptions): Pick<Coordinator, 'exchangeCommands'> {
  return {
    async exchangeCommands(joinToken, { site, connector, results, wait }) {
      const token = state.tokensByHash.get(hashSecret(joinToken));
      const expired = token?.expiresAtMs != null && token.expiresAtMs <= clock.now();
      if (token?.kind !== 'join' || expired) {
        throw new DroverError('UNAUTHENTICATED', 'the join token is unknown, expired or revoked', {
          hint: 'make one with: drover tokens create --kind join --pool POOL, of a pool there',
        });
      }
      const own = sites?.siteOf(token.pool);
      if (!sites || own !== site) {
        const where = own === undefined ? 'which is at no site' : `which is at site ${own}`;
        const message = `the join token is for pool ${token.pool}, ${where}, not for site ${site}`;
        throw new DroverError('PERMISSION_DENIED', message, {
          hint: `use a token of a pool whose slurm.site is ${site}`,
        });
      }
      const waitMs = wait ? longPollMs : 0;
      const isNew = !sites.inContact(site);
      const exchanged = sites.exchange(site, { connector, results, waitMs });
      if (isNew) {
        const here = pools.filter(({ name }) => sites.siteOf(name) === site);
        // What comes of it is the pool's to tell.
        for (const { name } of here) void look(name);
      }
      return { commands: await exchanged };
    },
  };
}
