/** The settings while they are mapped: what was looked at, what was left, and why. */
import { UsageError, wholeNumber } from '../args.ts';
import type { Setting, Settings } from './settings.ts';

/** Something sbatch would have done and Drover does not. */
export interface Unmapped {
  /** As one would type it: `--account=physics`. */
  option: string;
  from: string;
  why: string;
}

export interface Sheet {
  /** Undefined when it was not given; afterwards it counts as mapped. */
  take(name: string): string | undefined;
  has(name: string): boolean;
  /** A number of at least `least`. */
  number(name: string, least?: number): number | undefined;
  /** Says that a setting, or a part of it, is left out. */
  leave(name: string, why: string, part?: string): void;
  /** For messages: `--time (line 3)`. */
  label(name: string): string;
  /** Everything left out, also what nobody took. */
  unmapped(): Unmapped[];
}

const NO_EQUIVALENT = 'Drover has no equivalent';

/** Why some that are common in scripts go nowhere. */
const REASONS: Record<string, string> = {
  account: 'charges go to your tenant and user: see `drover usage`',
  begin: 'a job waits for others or for room, not for a time of day',
  'cpu-freq': 'Drover does not set clock rates',
  deadline: 'see --start-within of `drover run`',
  hold: 'a job cannot be held; submit it later',
  licenses: 'Drover counts no licenses',
  'mail-type': 'no channel is named for mail in sbatch.yaml',
  'mail-user': 'who is told is set on the server: name a channel for mail in sbatch.yaml',
  nice: 'order within a band is by fair share',
  'ntasks-per-core': 'tasks are not bound to cores',
  'ntasks-per-socket': 'tasks are not bound to sockets',
  oversubscribe: 'see a share of a GPU: --gpus 0.5 of `drover run`',
  priority: 'there are three bands: map a --qos in the table',
  reservation: 'there are no reservations; a pool may be limited to tenants',
  tmp: 'workers do not state their disk',
  'time-min': 'a time limit is not shortened to fit',
  wckey: 'use --comment, which becomes a label',
};

export function createSheet(settings: Settings): Sheet {
  const open = new Map(settings);
  const left: Unmapped[] = [];
  const written = (name: string, value: string): string =>
    value === '' ? `--${name}` : `--${name}=${value}`;
  const sheet: Sheet = {
    take(name) {
      open.delete(name);
      return settings.get(name)?.value;
    },
    has: (name) => settings.has(name),
    number(name, least = 1) {
      const text = sheet.take(name);
      return text === undefined ? undefined : wholeNumber(text, sheet.label(name), least);
    },
    leave(name, why, part) {
      open.delete(name);
      const { value, from } = settings.get(name) as Setting;
      left.push({ option: written(name, part ?? value), from, why });
    },
    label(name) {
      const { from } = settings.get(name) as Setting;
      return `--${name} (${from})`;
    },
    unmapped() {
      const rest = [...open].map(([name, { value, from }]) => ({
        option: written(name, value),
        from,
        why: REASONS[name] ?? NO_EQUIVALENT,
      }));
      return [...left, ...rest];
    },
  };
  return sheet;
}

/** MB where no unit is given, as in Slurm. */
export function megabytes(text: string, what: string): number {
  const match = /^(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?$/i.exec(text.trim());
  if (!match) throw new UsageError(`${what} ${JSON.stringify(text)} is not an amount of memory`);
  const factor = { k: 1 / 1024, m: 1, g: 1024, t: 1024 * 1024 }[match[2]!.toLowerCase() || 'm']!;
  return Math.ceil(Number(match[1]) * factor);
}
