/**
 * Hosts that a group has anyway, reached by ssh. Each takes one instance: a folder there holds its
 * label, and whoever made that label owns the host. Agents that die are started again.
 */
import { sleep, type Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { sshHosts, type SshHost, type SshPool } from '../../model/sshSettings.ts';
import type { LaunchBatch, LaunchResult, Listing, MachineRef, Provider } from '../contract.ts';
import { createSshShell } from '../remote/sshShell.ts';
import { createTurns, type Turns } from '../remote/turns.ts';
import { driftOf } from './drift.ts';
import { Host } from './host.ts';
import { machinesOf } from './machine.ts';
import { chooseHosts, refusalOf, type Tried } from './choice.ts';

/** Hosts that are looked at, or stopped, at the same time. */
const HOSTS_AT_ONCE = 32;
/** Hosts that one launch tries: each may take as long as a command may. */
export const LAUNCH_TRIES = 3;
/** Hosts that a notice names. */
const NOTICES = 10;
/** No further host is tried after this: whoever asked does not wait for ever. */
const LAUNCH_MS = 20_000;
const RETRY_MS = 10_000;
const CLEARED_MS = 2000;

export interface SshProviderOptions {
  pool: string;
  settings: SshPool;
  clusterId: string;
  /** The agent that the controller serves, to tell which hosts have another; empty: not told. */
  agentVersion: string;
  /**
   * Instances of this pool that the core knows and that are not over, from its store: they stand
   * for hosts which cannot be reached after a restart of the controller.
   */
  remembered: readonly MachineRef[];
  clock: Clock;
  random: Random;
  log: Log;
}

export function createSshProvider(options: SshProviderOptions): Provider {
  const { settings, clock } = options;
  const turns = createTurns(HOSTS_AT_ONCE);
  const hosts = sshHosts(settings).map((one) => openHost({ ...options, turns }, one));
  const remembered = new Map(options.remembered.map(({ handle, label }) => [handle, label]));
  const lookAll = (): Promise<void[]> => Promise.all(hosts.map(({ host }) => host.look()));
  const drift = ({ host, resources }: OpenHost): string[] =>
    host.seen
      ? driftOf(host.seen.report, host.seen.offMs, {
          ...{ version: options.agentVersion, resources },
          ...{ freeBytes: settings.freeBytes, clockOffMs: settings.clockOffMs },
        })
      : [];

  /** By its handle; where that was never told, by what was seen. */
  const hostOf = ({ handle, label }: MachineRef): Host | undefined =>
    hosts.find(({ host }) => (handle ? host.name === handle : host.instance?.label === label))
      ?.host;

  async function stop(ref: MachineRef): Promise<string | undefined> {
    if (!ref.handle && !hostOf(ref)) await lookAll();
    const host = hostOf(ref);
    // On no host that can be seen: where it is, `list` will show it once the host is back.
    if (!host) return undefined;
    return turns.run(() => host.stop(ref.label));
  }

  return {
    capabilities: {
      noun: 'SSH host',
      batches: false,
      gangs: false,
      sized: false,
      queues: false,
      labels: true,
    },

    launch: (batch) =>
      launch(
        hosts.map(({ host }) => host),
        batch,
        options,
        lookAll,
      ),

    async list(): Promise<Listing> {
      await Promise.race([lookAll(), sleep(clock, settings.lookMs)]);
      if (hosts.every(({ host }) => host.silence)) {
        const reason = hosts
          .map(({ host }) => host.silence?.reason)
          .slice(0, NOTICES)
          .join('; ');
        return { kind: 'unknown', reason, retryAfterMs: RETRY_MS };
      }
      const machines = hosts.flatMap((one) =>
        machinesOf(one.host, remembered.get(one.host.name), drift(one)),
      );
      const notice = noticeOf(hosts, drift);
      return { kind: 'known', machines, ...(notice && { notice }) };
    },

    async destroy({ machines }) {
      const reasons = (await Promise.all(machines.map(stop))).filter((why) => why !== undefined);
      if (reasons.length === 0) return { kind: 'asked' };
      return { kind: 'unknown', reason: reasons.join('; ') };
    },

    async probe(ref) {
      const host = hostOf(ref);
      await host?.look();
      if (!host || host.silence) {
        return { kind: 'unknown', reason: host?.silence?.reason ?? 'it is on no host we see' };
      }
      const course = host.instance?.label === ref.label ? host.course() : undefined;
      if (course?.kind === 'running') return { kind: 'ready', reason: 'its agent runs' };
      if (course?.kind === 'restart') return { kind: 'warming', reason: course.reason };
      const reason = course?.kind === 'over' ? course.reason : 'it is not there any more';
      return { kind: 'failed', failure: 'INFRA_FATAL', reason };
    },

    async logs(ref) {
      return (await hostOf(ref)?.logs(ref.label)) ?? '';
    },

    async close() {
      await Promise.all(hosts.map(({ host }) => host.close()));
    },
  };
}

interface OpenHost {
  host: Host;
  resources: string;
}

function openHost(options: SshProviderOptions & { turns: Turns }, one: SshHost): OpenHost {
  const { settings, turns, clock, random, pool, clusterId, agentVersion: version } = options;
  const { name, resources, agentCommand } = one;
  const log = options.log.child({ pool, host: name });
  const backoff = { minMs: settings.retryMaxMs / 100, maxMs: settings.retryMaxMs };
  const shell = createSshShell({
    ...{ destination: one, connectMs: settings.connectMs, backoff },
    ...{ clock, random, log },
  });
  const place = { root: one.folder, cluster: clusterId, pool, host: name };
  const own = { ...settings, resources, agentCommand };
  return {
    host: new Host({ name, place, shell, settings: own, version, turns, clock, log }),
    resources,
  };
}

async function launch(
  hosts: Host[],
  batch: LaunchBatch,
  { settings, clock }: Pick<SshProviderOptions, 'settings' | 'clock'>,
  lookAll: () => Promise<unknown>,
): Promise<LaunchResult> {
  const [intent] = batch.intents;
  if (!intent) return { kind: 'launched', handles: [], script: '' };
  if (hosts.some((host) => !host.seen && !host.silence)) {
    await Promise.race([lookAll(), sleep(clock, settings.lookMs)]);
  }
  // A launch whose reply was lost may be asked for again.
  const already = hosts.find(({ instance }) => instance?.label === intent.label);
  if (already) return { kind: 'launched', handles: [already.name], script: '' };
  const { free, taken } = chooseHosts(hosts, batch.avoid, settings.freeBytes);
  const tried: Tried[] = taken;
  const endsAtMs = clock.bootMs() + LAUNCH_MS;
  for (const host of free.slice(0, LAUNCH_TRIES)) {
    if (clock.bootMs() > endsAtMs) break;
    const result = await host.launch(intent, batch.agent);
    if (result.kind === 'launched') {
      return { kind: 'launched', handles: [host.name], script: result.script };
    }
    // It may run there: trying another host could bring two.
    if (result.kind === 'lost')
      return { kind: 'unknown', reason: `${host.name}: ${result.reason}` };
    tried.push({ host: host.name, why: 'trouble', ...result.trouble });
  }
  return { kind: 'refused', ...refusalOf(tried), retryAfterMs: await clear(hosts) };
}

/** Hosts with something that is over are free in a moment. */
async function clear(hosts: Host[]): Promise<number> {
  const over = hosts.filter((host) => !host.silence && host.course()?.kind === 'over');
  await Promise.all(over.map((host) => host.stop(host.instance?.label ?? '')));
  return over.length > 0 ? CLEARED_MS : RETRY_MS;
}

function noticeOf(hosts: OpenHost[], drift: (one: OpenHost) => string[]): string {
  const told = hosts.flatMap((one) => {
    const { silence, trouble, seen, name } = one.host;
    const others = seen?.report.others.map((other) => `${other} uses it`) ?? [];
    const words = [...(silence ? [`cannot be reached: ${silence.reason}`] : drift(one)), ...others];
    if (trouble && !silence) words.push(`could not be launched on: ${trouble.reason}`);
    return words.length === 0 ? [] : [`${name}: ${words.join(', ')}`];
  });
  const more = told.length - NOTICES;
  return [...told.slice(0, NOTICES), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}
