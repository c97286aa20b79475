/** The Coordinator contract on the real controller: in this thread, on its own threads, by gRPC. */
import { DEFAULT_POLICY } from '../../src/core/schedule/plan.ts';
import { freePool } from '../../src/core/placement/admission.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startController } from '../../src/bin/controllerPart.ts';
import { createController } from '../../src/control/controller.ts';
import { createFileLogStore } from '../../src/control/logs/fileLogStore.ts';
import { createPlanner } from '../../src/control/planner.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLog } from '../../src/lib/log.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { settingsSchema } from '../../src/model/settings.ts';
import { createGrpcCoordinator } from '../../src/protocol/grpc/client.ts';
import { createGrpcServer } from '../../src/protocol/grpc/server.ts';
import { openSqlite } from '../../src/store/dialects/sqlite.ts';
import { openHistory } from '../../src/store/open.ts';
import { accountsContract } from './accounts.contract.ts';
import { coordinatorContract, type CoordinatorUnderTest } from './coordinator.contract.ts';

const TOKENS = { admin: 'drv_contract', join: 'drj_contract' };
const SECRETS = { adminSecret: TOKENS.admin, joinSecret: TOKENS.join };

coordinatorContract('the controller in one thread', inline);
coordinatorContract('the controller on its threads', onThreads);
coordinatorContract('the controller behind gRPC', async () => overGrpc(await inline()));
accountsContract('the controller in one thread', inline);
accountsContract('the controller on its threads', onThreads);

async function inline(): Promise<CoordinatorUnderTest> {
  const folder = mkdtempSync(join(tmpdir(), 'drover-contract-'));
  const sqlite = { file: join(folder, 'drover.db'), cacheBytes: 1 << 20, checkpointPages: 1000 };
  const store = openSqlite(sqlite);
  const snapshot = await store.boot(Date.now(), 'c0test');
  const history = openHistory({ kind: 'sqlite', ...sqlite });
  const common = { clock: systemClock, random: systemRandom, log: silentLog };
  const logs = createFileLogStore({ dir: join(folder, 'logs'), ...common });
  const controller = createController({
    snapshot,
    storeKind: 'sqlite',
    writer: store,
    history,
    planner: createPlanner(systemRandom),
    logs,
    ...common,
    settings: {
      clusterName: 'contract',
      timers: {
        workerLeaseMs: 30_000,
        attemptLeaseMs: 300_000,
        killMarginMs: 15_000,
        longPollMs: 2000,
      },
      loops: {
        scheduleMs: 1000,
        leasesMs: 1000,
        deadlinesMs: 1000,
        chargesMs: 1000,
        noticesMs: 1000,
        capacityMs: 1000,
      },
      pools: [freePool('default')],
      schedule: DEFAULT_POLICY,
    },
    onFatal(error) {
      throw error;
    },
  });
  await controller.ensureTokens(TOKENS);
  return {
    coordinator: controller.coordinator,
    ...SECRETS,
    async close() {
      await controller.close();
      await logs.close();
      await history.close();
      await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

async function onThreads(): Promise<CoordinatorUnderTest> {
  const dir = mkdtempSync(join(tmpdir(), 'drover-contract-'));
  const settings = settingsSchema.parse({
    data: { dir },
    logs: { level: 'error' },
    leases: { longPollMs: 2000 },
  });
  const controller = await startController(settings, TOKENS, silentLog);
  return {
    coordinator: controller.coordinator,
    ...SECRETS,
    async close() {
      await controller.close();
      rmSync(dir, { recursive: true });
    },
  };
}

async function overGrpc(inner: CoordinatorUnderTest): Promise<CoordinatorUnderTest> {
  const apiSecret = 'a secret of gateways';
  const server = await createGrpcServer({
    coordinator: inner.coordinator,
    host: '127.0.0.1',
    port: 0,
    apiSecret,
    log: silentLog,
  });
  const coordinator = createGrpcCoordinator({ url: `grpc://127.0.0.1:${server.port}`, apiSecret });
  return {
    coordinator,
    ...SECRETS,
    async close() {
      coordinator.close();
      await server.close();
      await inner.close();
    },
  };
}
