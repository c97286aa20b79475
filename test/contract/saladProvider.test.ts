/** The contract of providers on SaladCloud: its emulator, as quick as it goes. */
import { systemClock as clock } from '../../src/lib/clock.ts';
import { silentLog as log } from '../../src/lib/log.ts';
import { saladPool } from '../../src/model/saladSettings.ts';
import { createSaladProvider } from '../../src/providers/salad/provider.ts';
import { startSaladEmulator, type SaladEmulator } from '../support/salad/emulator.ts';
import { providerContract, type ProviderWorld } from './provider.contract.ts';

/** The contract looks a hundred times as often as a controller: so fast goes the budget. */
const hurried = { ...clock, bootMs: () => clock.bootMs() * 100 };
const times = { prepareMs: 0, allocateMs: 20, downloadMs: 20, createMs: 20, stopMs: 50 };

providerContract('salad', async (): Promise<ProviderWorld> => {
  const emulator = await startSaladEmulator({ clock, times, quota: 10 });
  const full = await startSaladEmulator({ clock, times, quota: 0 });
  const openAt = ({ url, apiKey }: SaladEmulator, clusterId: string, more: object = {}) => {
    const names = { organization: 'a-lab', project: 'gpus', image: 'debian:13' };
    const settings = saladPool.parse({ ...names, url, ...more });
    const env = { SALAD_API_KEY: apiKey };
    return createSaladProvider({ pool: 'salad', settings, clusterId, clock: hurried, log, env });
  };
  return {
    open: (clusterId) => openAt(emulator, clusterId),
    patienceMs: 5000,
    async breakDown() {
      const repair = emulator.fail({ kind: 'html', times: Number.POSITIVE_INFINITY });
      return async () => repair();
    },
    refusing: {
      capacity: (clusterId) => openAt(full, clusterId),
      configuration: (clusterId) => openAt(emulator, clusterId, { project: 'no-project' }),
      unreachable(clusterId) {
        full.fail({ kind: 'too-many' });
        return openAt(full, clusterId);
      },
    },
    async close() {
      await emulator.close();
      await full.close();
    },
  };
});
