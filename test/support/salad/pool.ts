/** A pool on the emulator: providers that are opened on it, and what tests ask them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '../../../src/lib/log.ts';
import { saladPool } from '../../../src/model/saladSettings.ts';
import type { LaunchBatch, Machine, Provider } from '../../../src/providers/contract.ts';
import { createSaladProvider } from '../../../src/providers/salad/provider.ts';
import { ManualClock } from '../manualClock.ts';
import { startSaladEmulator, type EmulatorOptions, type SaladEmulator } from './emulator.ts';

export const JOIN_TOKEN = 'join-token-that-nobody-may-see';
export const MINUTE = 60_000;
/** Prepared, allocated, pulled, created. */
export const UP_MS = 200_000;

export interface SaladPool {
  clock: ManualClock;
  emulator: SaladEmulator;
  /** Every line that was logged. */
  logged: string[];
  keyFile: string;
  open: (settings?: object, pool?: string) => Provider;
  close(): Promise<void>;
}

export async function startSaladPool(options: Partial<EmulatorOptions> = {}): Promise<SaladPool> {
  const clock = new ManualClock();
  const emulator = await startSaladEmulator({ clock, ...options });
  const folder = mkdtempSync(join(tmpdir(), 'drover-salad-'));
  const keyFile = join(folder, 'key');
  writeFileSync(keyFile, `${emulator.apiKey}\n`);
  const logged: string[] = [];
  const note = (fields: object, message: string): void =>
    void logged.push(JSON.stringify({ ...fields, message }));
  const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log };
  return {
    ...{ clock, emulator, logged, keyFile },
    open(more = {}, pool = 'salad') {
      const settings = saladPool.parse({
        ...{ organization: 'a-lab', project: 'gpus', url: emulator.url, apiKeyFile: keyFile },
        ...{ image: 'debian:13', gpuClasses: ['rtx 4090 (24 GB)'] },
        ...more,
      });
      return createSaladProvider({ pool, settings, clusterId: 'c7x', clock, log, env: {} });
    },
    async close() {
      await emulator.close();
      rmSync(folder, { recursive: true });
    },
  };
}

let batches = 0;

export function batch(target: number, more: Partial<LaunchBatch> = {}): LaunchBatch {
  const id = `i0abc${++batches}`;
  return {
    id,
    intents: [{ label: id, joinToken: JOIN_TOKEN }],
    resources: null,
    ...{ workers: 1, timeLimitMs: 0, noticeMs: 0, runAs: null, name: 'md', avoid: [], target },
    agent: { url: 'https://drover.example:7070', authorities: '', selfDestructAfterMs: MINUTE },
    ...more,
  };
}

export async function machinesOf(provider: Provider): Promise<Machine[]> {
  const listing = await provider.list();
  if (listing.kind !== 'known') throw new Error(listing.reason);
  return listing.machines;
}

/** Launches so many and waits until they run. */
export async function bringUp({ clock }: SaladPool, provider: Provider, count: number) {
  const result = await provider.launch(batch(count));
  if (result.kind !== 'launched') throw new Error(result.reason);
  await clock.advance(UP_MS);
  const machines = await machinesOf(provider);
  if (machines.length === count && machines.every(({ phase }) => phase === 'running')) {
    return machines;
  }
  throw new Error(`not up: ${JSON.stringify(machines)}`);
}
