/** GPU classes: which ids the configured names have, and what an hour costs. */
import type { Clock } from '../../lib/clock.ts';
import { nearest } from '../../lib/nearest.ts';
import type { SaladSettings } from '../../model/saladSettings.ts';
import type { GpuClass, SaladApi } from './api.ts';
import type { Reply } from './requests.ts';

/** Prices change by the week. */
const KEPT_MS = 60 * 60_000;
const MICROS = 1_000_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const NO_SUCH = 400;

export interface GpuClasses {
  /** In the order of the settings. Refused: a name that SaladCloud does not have. */
  ids(): Promise<Reply<string[]>>;
  /** Of the dearest of them, since nobody says which one a replica got; null: not known. */
  hourMicros(): Promise<number | null>;
}

export function createGpuClasses(
  api: Pick<SaladApi, 'gpuClasses'>,
  settings: Pick<SaladSettings, 'gpuClasses' | 'priority' | 'publishedPrices'>,
  clock: Pick<Clock, 'bootMs'>,
): GpuClasses {
  const wanted = settings.gpuClasses;
  let known: { classes: GpuClass[]; atMs: number } | undefined;

  async function all(): Promise<Reply<GpuClass[]>> {
    if (known && clock.bootMs() - known.atMs < KEPT_MS) {
      return { kind: 'done', value: known.classes };
    }
    const reply = await api.gpuClasses();
    if (reply.kind === 'done') known = { classes: reply.value, atMs: clock.bootMs() };
    // What was true an hour ago is better than nothing.
    else if (known) return { kind: 'done', value: known.classes };
    return reply;
  }

  return {
    async ids() {
      if (wanted.every((name) => UUID.test(name))) return { kind: 'done', value: wanted };
      const reply = await all();
      if (reply.kind !== 'done') return reply;
      const found = wanted.map((name) => ({ name, id: classOf(reply.value, name)?.id }));
      const missing = found.find(({ id }) => id === undefined);
      if (!missing) return { kind: 'done', value: found.map(({ id }) => id ?? '') };
      return {
        kind: 'refused',
        status: NO_SUCH,
        retryAfterMs: 0,
        reason: noSuch(missing.name, reply.value),
      };
    },
    async hourMicros() {
      if (!settings.publishedPrices || wanted.length === 0) return null;
      const reply = await all();
      if (reply.kind !== 'done') return null;
      const prices = wanted.map((name) => priceOf(classOf(reply.value, name), settings.priority));
      return prices.includes(null) ? null : Math.max(...prices.map(Number));
    },
  };
}

function classOf(classes: readonly GpuClass[], name: string): GpuClass | undefined {
  const sought = name.toLowerCase();
  return classes.find(
    (one) => one.id.toLowerCase() === sought || one.name.toLowerCase() === sought,
  );
}

function priceOf(gpuClass: GpuClass | undefined, priority: string): number | null {
  const text = gpuClass?.prices.find((price) => price.priority === priority)?.price;
  const price = Number(text || Number.NaN);
  return Number.isFinite(price) && price >= 0 ? Math.round(price * MICROS) : null;
}

function noSuch(name: string, classes: readonly GpuClass[]): string {
  const names = classes.map((one) => one.name);
  const near = nearest(name, names);
  const known = near ? `did you mean "${near}"?` : `it has: ${names.join(', ')}`;
  return `SaladCloud has no GPU class "${name}" (salad.gpuClasses); ${known}`;
}
