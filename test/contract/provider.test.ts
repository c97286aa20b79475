/** One contract: on the fake provider, with labels and as one that only scales by a number. */
import { systemClock as clock } from '../../src/lib/clock.ts';
import { seededRandom } from '../../src/lib/random.ts';
import type { Capabilities } from '../../src/providers/contract.ts';
import { FakeAccount } from '../../src/providers/fake/account.ts';
import { randomFaults, ScriptedFaults } from '../../src/providers/fake/faults.ts';
import { createFakeProvider } from '../../src/providers/fake/provider.ts';
import { providerContract, type ProviderWorld } from './provider.contract.ts';

const QUICK = {
  travel: [0, 2],
  replyTimeout: [5, 10],
  lag: [10, 100],
  queued: [0, 20],
  boot: [10, 50],
  end: [10, 50],
  shownGone: [10, 100],
} as const;

providerContract('fake', () => fakeWorld({}));
providerContract('fake that scales by a number', () =>
  fakeWorld({ labels: false, batches: false }),
);

function fakeWorld(capabilities: Partial<Capabilities>): Promise<ProviderWorld> {
  const random = seededRandom(1);
  const faults = randomFaults(random, { 'list: lags behind': 0.3 });
  const account = new FakeAccount({ clock, random, faults, times: QUICK });
  const open = (clusterId: string) =>
    createFakeProvider({ account, clusterId, pool: 'rented', clock, capabilities });
  const refusing = (clusterId: string, fault: Parameters<ScriptedFaults['next']>[0]) => {
    const scripted = new ScriptedFaults();
    scripted.next(fault);
    const empty = new FakeAccount({ clock, random, faults: scripted, times: QUICK });
    return createFakeProvider({ account: empty, clusterId, pool: 'rented', clock, capabilities });
  };
  return Promise.resolve({
    open,
    patienceMs: 5000,
    async breakDown() {
      account.reachable = false;
      return async () => void (account.reachable = true);
    },
    refusing: {
      capacity: (clusterId) => refusing(clusterId, 'launch: no capacity'),
      configuration: (clusterId) => refusing(clusterId, 'launch: configuration refused'),
      unreachable: (clusterId) => refusing(clusterId, 'launch: unreachable'),
    },
    close: () => Promise.resolve(),
  });
}
