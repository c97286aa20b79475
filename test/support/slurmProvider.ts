/** The Slurm provider before a real Slurm: settings, batches and waiting, in short. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { systemClock as clock } from '../../src/lib/clock.ts';
import { silentLog as log } from '../../src/lib/log.ts';
import { systemRandom as random } from '../../src/lib/random.ts';
import { slurmPool, slurmSite, type SlurmSiteSettings } from '../../src/model/slurmSettings.ts';
import type { LaunchBatch, LaunchResult, Machine, Provider } from '../../src/providers/contract.ts';
import { createSlurmProvider } from '../../src/providers/slurm/provider.ts';
import { openSlurmSite, type SlurmSite } from '../../src/providers/slurm/site.ts';
import type { Slurm } from './slurm.ts';
import { until } from './wait.ts';

export const TOKEN = 'drv_join_only_for_this_intent';

export interface SlurmWorld {
  folder: string;
  site(name: string, more?: Partial<SlurmSiteSettings>): SlurmSite;
  pool(
    site: SlurmSite,
    more?: Record<string, unknown>,
    name?: string,
    clusterId?: string,
  ): Provider;
  /** A folder of Slurm's commands, of which sbatch submits and then says nothing. */
  slowSbatch(): string;
  /** A file below the folder, with its path. */
  file(name: string, text: string, mode?: number): string;
  close(): Promise<void>;
}

const backoff = { minMs: 50, maxMs: 100 };
/** An agent here prints what it was told, and waits. */
const AGENT = 'env | grep -E "^(DROVER|CONTROLLER|CUDA)" | sort; echo up; sleep 300';

export function createSlurmWorld(slurm: Slurm): SlurmWorld {
  const folder = path.join(slurm.root, 'drover');
  mkdirSync(folder, { mode: 0o777 });
  const sites: SlurmSite[] = [];
  const file = (name: string, text: string, mode = 0o644): string => {
    const full = path.join(folder, name);
    mkdirSync(path.dirname(full), { recursive: true });
    writeFileSync(full, text, { mode });
    return full;
  };
  const template = file('plain.j2', '#!/bin/bash\n{{ start }}');
  return {
    folder,
    file,
    slowSbatch() {
      const slow = path.join(folder, 'slow');
      file('slow/sbatch', '#!/bin/sh\n/usr/bin/sbatch "$@" >/dev/null\nsleep 60\n', 0o755);
      for (const name of ['squeue', 'scancel', 'scontrol', 'sinfo']) {
        rmSync(path.join(slow, name), { force: true });
        symlinkSync(`/usr/bin/${name}`, path.join(slow, name));
      }
      return slow;
    },
    site(name, more = {}) {
      const settings = { ...slurmSite.parse({ slurmConf: slurm.conf }), ...more };
      const site = openSlurmSite({ name, settings, backoff, clock, random, log });
      sites.push(site);
      return site;
    },
    pool(site, more = {}, name = 'gpus', clusterId = 'c1') {
      const output = path.join(folder, 'output');
      const ours = { site: site.name, template, folder: output, agentCommand: AGENT };
      const settings = slurmPool.parse({ ...ours, scratch: folder, ...more });
      return createSlurmProvider({ pool: name, settings, site, clusterId, clock, log });
    },
    close: async () => void (await Promise.all(sites.map((site) => site.close()))),
  };
}

let batches = 0;

export function batchOfJobs(more: Partial<LaunchBatch> = {}, count = 1): LaunchBatch {
  const id = more.id ?? `i0test${(batches++).toString(36)}`;
  const intents = Array.from({ length: count }, (_, place) => ({
    label: count > 1 ? `${id}.${place}` : id,
    joinToken: count > 1 ? `${TOKEN}_${place}` : TOKEN,
  }));
  const agent = { url: 'http://127.0.0.1:7070', authorities: '', selfDestructAfterMs: 3_600_000 };
  return {
    ...{ id, intents, resources: null, workers: 1, timeLimitMs: 0, noticeMs: 0, runAs: null },
    ...{ name: 'md run', avoid: [], target: count, agent },
    ...more,
  };
}

export async function machinesOf(provider: Provider): Promise<Machine[]> {
  const listing = await provider.list();
  if (listing.kind !== 'known') throw new Error(`unknown: ${listing.reason}`);
  return listing.machines;
}

/** The machine of this label, once it is as wanted. */
export function seen(
  provider: Provider,
  label: string,
  wanted: (machine: Machine) => boolean,
): Promise<Machine> {
  return until(`the machine ${label}`, async () => {
    const machine = (await machinesOf(provider)).find((one) => one.label === label);
    return machine && wanted(machine) ? machine : undefined;
  });
}

/** What the agents of a machine printed, once there are as many as it has workers. */
export async function told(provider: Provider, machine: Machine, workers = 1): Promise<string> {
  return until('what the agent printed', async () => {
    const text = (await provider.logs?.(machine)) ?? '';
    return text.split('\n').filter((line) => line === 'up').length >= workers ? text : undefined;
  });
}

export function launchedOf(result: LaunchResult): Extract<LaunchResult, { kind: 'launched' }> {
  if (result.kind !== 'launched') throw new Error(`${result.kind}: ${result.reason}`);
  return result;
}

export async function destroyed(provider: Provider, labels: readonly string[]): Promise<void> {
  const machines = labels.map((label) => ({ label, handle: '' }));
  const result = await provider.destroy({ machines, target: 0 });
  if (result.kind !== 'asked') throw new Error(result.reason);
  await until('all of them are gone', async () =>
    (await machinesOf(provider)).every(
      ({ label, phase }) => !labels.includes(label) || phase === 'gone',
    ),
  );
}
