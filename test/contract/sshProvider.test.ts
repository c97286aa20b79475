/** The providers' contract on ssh hosts: real sshds, `sleep` for an agent. */
import { systemClock as clock } from '../../src/lib/clock.ts';
import { silentLog as log } from '../../src/lib/log.ts';
import { systemRandom as random } from '../../src/lib/random.ts';
import { sshPool } from '../../src/model/sshSettings.ts';
import type { Provider } from '../../src/providers/contract.ts';
import { createSshProvider } from '../../src/providers/ssh/provider.ts';
import { sshdIsHere, startSshServers } from '../support/sshServers.ts';
import { providerContract, type ProviderWorld } from './provider.contract.ts';

if (sshdIsHere()) providerContract('ssh', sshWorld);

async function sshWorld(): Promise<ProviderWorld> {
  const servers = startSshServers();
  const hosts = await Promise.all(['a', 'b'].map((name) => servers.host(name)));
  const open = (clusterId: string, more: object = {}): Provider =>
    createSshProvider({
      pool: 'desks',
      settings: sshPool.parse({
        hosts: hosts.map(({ name, port }) => ({ host: '127.0.0.1', name, port })),
        ...{ user: servers.user, keyFile: servers.keyFile },
        knownHostsFile: servers.knownHostsFile,
        agentCommand: 'exec sleep 300',
        ...{ freeBytes: 1, retryMaxMs: 500, ...more },
      }),
      ...{ clusterId, agentVersion: '', remembered: [], clock, random, log },
    });
  return {
    open,
    patienceMs: 30_000,
    async breakDown() {
      await Promise.all(hosts.map((host) => host.stop()));
      return async () => void (await Promise.all(hosts.map((host) => host.start())));
    },
    refusing: {
      configuration: (clusterId) => open(clusterId, { keyFile: '/no/such/key' }),
      unreachable: (clusterId) => open(clusterId, { port: 1, hosts: ['127.0.0.1'] }),
    },
    close: () => servers.close(),
  };
}
