/** SaladCloud: each pool is one container group, its machines are the replicas of it. */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { SaladSettings } from '../../model/saladSettings.ts';
import type { Listing, MachineRef, Provider } from '../contract.ts';
import { createApi, type Group, type SaladApi } from './api.ts';
import { groupName, looksAlike, resourcesOf } from './definition.ts';
import { destroy } from './destroy.ts';
import { createGpuClasses, type GpuClasses } from './gpuClasses.ts';
import { keyReader } from './key.ts';
import { launch } from './launch.ts';
import { failureOf, machinesOf } from './machines.ts';
import { createMoves, type Moves } from './moves.ts';
import { createSend, type Reply } from './requests.ts';

export interface SaladOptions {
  pool: string;
  settings: SaladSettings;
  clusterId: string;
  clock: Clock;
  log: Log;
  /** Where the API key is if it has no file of its own. */
  env: Readonly<Record<string, string | undefined>>;
}

export function createSaladProvider(options: SaladOptions): Provider {
  const { settings, clock } = options;
  const name = groupName(options.clusterId, options.pool);
  const log = options.log.child({ pool: options.pool, group: name });
  const readKey = keyReader(settings.apiKeyFile, options.env);
  const api = createApi(createSend({ settings, clock, readKey }), settings.project, name);
  const gpuClasses = createGpuClasses(api, settings, clock);
  const moves = createMoves(log);
  return {
    capabilities: {
      noun: 'Salad replica',
      batches: true,
      gangs: false,
      sized: false,
      queues: true,
      labels: false,
    },
    launch: (batch) => launch(batch, { api, settings, gpuClasses, name }),
    list: () => list(api, settings, gpuClasses, moves),
    destroy: (request) => destroy(request, api),
    logs: (machine) => logs(machine, api),
    // The group stays as it is: what it costs is decided by `destroy` alone.
    close: async () => undefined,
  };
}

async function list(
  api: SaladApi,
  settings: SaladSettings,
  gpuClasses: GpuClasses,
  moves: Moves,
): Promise<Listing> {
  const group = await api.group();
  if (isAbsent(group)) return { kind: 'known', machines: [] };
  if (group.kind !== 'done') return unknown(group);
  const instances = await api.instances();
  // Deleted between the two questions.
  if (isAbsent(instances)) return { kind: 'known', machines: [] };
  if (instances.kind !== 'done') return unknown(instances);
  moves.see(instances.value);
  const priceHourMicros = group.value.replicas > 0 ? await gpuClasses.hourMicros() : null;
  const seen = { group: group.value, instances: instances.value, priceHourMicros };
  const notice = noticeOf(group.value, settings);
  return {
    kind: 'known',
    machines: machinesOf({ ...seen, moves: (one) => moves.of(one) }),
    ...(notice && { notice }),
  };
}

function isAbsent(reply: Reply<unknown>): boolean {
  return reply.kind === 'refused' && reply.status === 404;
}

function unknown(reply: Exclude<Reply<unknown>, { kind: 'done' }>): Listing {
  const retryAfterMs = reply.kind === 'refused' ? reply.retryAfterMs : 0;
  return { kind: 'unknown', reason: reply.reason, retryAfterMs };
}

function noticeOf(group: Group, settings: SaladSettings): string | undefined {
  const failure = failureOf(group);
  if (failure !== undefined) return failure;
  if (group.replicas === 0) return undefined;
  const { gpu_classes: _, ...resources } = resourcesOf(settings, []);
  if (looksAlike(group, settings.image, resources)) return undefined;
  return 'image or size have changed in the settings: they hold once all replicas have ended';
}

/** What the container printed goes to the logging service of the group; these are Salad's own. */
async function logs({ handle }: MachineRef, api: SaladApi): Promise<string> {
  const reply = await api.systemLogs();
  if (reply.kind !== 'done') return reply.reason;
  return reply.value
    .filter((event) => !handle || event.instance_id === handle)
    .toSorted((a, b) => (a.event_time < b.event_time ? -1 : 1))
    .map((event) => `${event.event_time} ${event.event_name} ${event.machine_id ?? ''}`.trimEnd())
    .join('\n');
}
