/** What every scenario is given, and the rule that one system's failure does not end the run. */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { MetricName } from './metrics.ts';
import type { Report } from './report.ts';

export interface Bench {
  report: Report;
  /** How long a rate is measured. */
  seconds: number;
  warmupSeconds: number;
  /** Smaller counts, for a look; the figures then prove nothing. */
  quick: boolean;
  systems: Set<string>;
  /** On a disk, for every store of the run. */
  directory: string;
}

export interface System {
  system: string;
  durability: string;
}

/** A new folder of its own on the common disk. */
export function folder(bench: Bench, name: string): string {
  return mkdtempSync(join(bench.directory, `${name}-`));
}

/** A rate counts only when everything that was accepted is really there, once. */
export function mustEqual(what: string, found: number, accepted: number): void {
  if (found !== accepted) throw new Error(`${what}: ${accepted} accepted, ${found} in the store`);
}

/**
 * Measures one system, unless it was left out; what goes wrong becomes failed rows that say why.
 */
export async function measure(
  bench: Bench,
  { system, durability }: System,
  metrics: MetricName[],
  work: () => Promise<void>,
): Promise<void> {
  if (!bench.systems.has(system)) return;
  try {
    await work();
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const note = text.replaceAll(/\s+/g, ' ').slice(0, 300);
    for (const metric of metrics) {
      if (bench.report.value(metric, system) !== null) continue;
      bench.report.add(metric, { system, durability, value: null, note });
    }
  }
}
