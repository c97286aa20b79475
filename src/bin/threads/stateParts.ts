/** What the state thread holds: mutations, sessions, loops; the Coordinator answers from here. */
import { workerData } from 'node:worker_threads';
import { createController, type ControllerSettings } from '../../control/controller.ts';
import type { LogStore } from '../../control/logs.ts';
import { systemClock } from '../../lib/clock.ts';
import { systemRandom } from '../../lib/random.ts';
import { serve } from '../../lib/thread.ts';
import { unpackSpecs } from '../../model/spec.ts';
import type { ExchangeSettings } from '../../model/exchangeSettings.ts';
import type { SecretSettings } from '../../model/secretSettings.ts';
import type { Settings } from '../../model/settings.ts';
import type { Principal } from '../../model/token.ts';
import type { SubmitReply, SubmitRequest } from '../../protocol/coordinator.ts';
import type { Channels } from '../../control/notices.ts';
import type { NotifySettings } from '../../model/notifySettings.ts';
import { openChannels } from '../../notify/open.ts';
import { openSecrets } from '../../secrets/open.ts';
import { exchangeOf } from '../exchange.ts';
import { openFleet, type FleetParts, type Home } from '../fleet.ts';
import { historyClient } from '../../store/historyCalls.ts';
import { rebuild, type StoreSettings } from '../../store/open.ts';
import { openPolicy } from '../policyFile.ts';
import type { LogThreadOptions } from './logs.ts';
import type { ThreadData } from './start.ts';
import { died, log, logs, planner, reader, writer } from './stateThreads.ts';

export interface StateThreadOptions {
  store: StoreSettings;
  logs: LogThreadOptions;
  controller: ControllerSettings;
  fleet: Settings['fleet'];
  secrets: SecretSettings;
  exchange: ExchangeSettings;
  notify: NotifySettings;
  policyFile: string;
  tokens: { admin: string; join: string };
  level: string;
}

/** Specs cross threads as one text: cheaper to copy than the objects they are. */
export interface PackedCalls {
  submitPacked(
    who: Principal,
    request: Omit<SubmitRequest, 'specs'>,
    specs: string,
  ): Promise<SubmitReply>;
}

const { port, options } = workerData as ThreadData<StateThreadOptions>;
const jobMetrics: LogStore = {
  append: (chunks) => logs.calls.metricsAppend(chunks),
  read: (job, query) => logs.calls.metricsRead(job, query),
  wait: (job, after, waitMs) => logs.calls.metricsWait(job, after, waitMs),
  offsets: (job) => logs.calls.metricsOffsets(job),
  // With the thread's logs.
  close: () => Promise.resolve(),
};
const stop: (() => Promise<unknown>)[] = [];

let fleet: FleetParts | null = null;

serve(port, { boot, close, tellHome });

/** The lock, the migration and the rebuild; then everything else starts. */
async function boot(): Promise<void> {
  const clusterId = `c${systemRandom.hex(6)}`;
  const begun = systemClock.bootMs();
  const nowMs = systemClock.now();
  const controllerRow = await writer.calls.lead(nowMs, clusterId);
  const policy = await openPolicy(options.policyFile, { clock: systemClock, log });
  const snapshot = await rebuild(options.store, controllerRow, nowMs);
  const { clusterId: id, instances } = snapshot;
  const common = { clusterId: id, instances, clock: systemClock, log };
  fleet = openFleet(options.fleet, options.tokens.join, common);
  const controller = createController({
    snapshot,
    fleet,
    connectors: fleet.connectors,
    storeKind: options.store.kind,
    writer: writer.calls,
    history: historyClient(reader.calls),
    planner: planner.calls,
    logs: logs.calls,
    jobMetrics,
    secrets: openSecrets(options.secrets, process.env),
    minter: exchangeOf(options.exchange, log)?.minter,
    channels: await channels(),
    policy,
    clock: systemClock,
    random: systemRandom,
    log,
    settings: options.controller,
    onFatal: (error) => died('writer', error),
  });
  await controller.ensureTokens(options.tokens);
  serve(port, controller.coordinator);
  const packed: PackedCalls = {
    submitPacked: (who, request, specs) =>
      controller.coordinator.submit(who, { ...request, specs: unpackSpecs(specs) }),
  };
  serve(port, packed);
  log.info(
    {
      epoch: snapshot.epoch,
      jobs: snapshot.jobs.length,
      tasks: snapshot.tasks.length,
      tookMs: systemClock.bootMs() - begun,
    },
    'the controller is up',
  );
  stop.push(
    async () => policy.close(),
    async () => fleet?.letGo(),
    () => controller.close(),
    async () => fleet?.close(),
    () => logs.calls.close(),
    () => reader.calls.close(),
    () => writer.calls.close(),
  );
}

async function channels(): Promise<Channels> {
  const now = (): number => systemClock.now();
  const opened = openChannels(options.notify, { env: process.env, now });
  for (const [channel, one] of opened) {
    // Not worth staying down for: what is sent over it is tried for a day.
    await one.check().catch((error: unknown) => {
      log.warn({ channel, err: error }, 'a notification channel cannot be used yet');
    });
  }
  return opened;
}

async function tellHome(home: Home): Promise<void> {
  const { agentUrl } = options.fleet;
  fleet?.tellHome(agentUrl ? { ...home, url: agentUrl } : home);
}

async function close(): Promise<void> {
  for (const one of stop.splice(0)) await one();
}
