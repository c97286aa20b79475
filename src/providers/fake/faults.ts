/** What can go wrong at the fake provider, and who decides that it does. */
import type { Random } from '../../lib/random.ts';

const LAUNCH_FAULTS = [
  'launch: request lost',
  'launch: reply lost',
  'launch: fails though it created',
  'launch: refused though it created',
  'launch: creates only a part',
  'launch: taken twice',
  'launch: appears late',
  'launch: no capacity',
  'launch: configuration refused',
  'launch: unreachable',
  'launch: too many requests',
] as const;

const LIST_FAULTS = ['list: fails', 'list: throws', 'list: lags behind'] as const;

/** Drawn once for each machine, when it is made. */
export const MACHINE_FAULTS = [
  'machine: stuck in the queue',
  'machine: stuck while it boots',
  'machine: never joins',
  'machine: fails for its host',
  'machine: fails for its image',
  'machine: stalls',
  'machine: fails and stays billed',
  'machine: vanishes',
  'machine: outbid and still billed',
  'machine: costs more than told',
  'machine: restarted on another host',
] as const;
export type MachineFault = (typeof MACHINE_FAULTS)[number];

const DESTROY_FAULTS = [
  'destroy: request lost',
  'destroy: reply lost',
  'destroy: heard and not done',
  'destroy: takes long',
] as const;

const PROBE_FAULTS = ['probe: fails'] as const;

export const PROVIDER_FAULTS = [
  ...LAUNCH_FAULTS,
  ...LIST_FAULTS,
  ...MACHINE_FAULTS,
  ...DESTROY_FAULTS,
  ...PROBE_FAULTS,
] as const;
export type ProviderFault = (typeof PROVIDER_FAULTS)[number];

export interface FaultPlan {
  /** Asked wherever it could happen. */
  happens(fault: ProviderFault): boolean;
}

/** Each fault with its own probability; none where no rate is given. */
export function randomFaults(
  random: Random,
  rates: Partial<Record<ProviderFault, number>>,
): FaultPlan {
  return {
    happens(fault) {
      const rate = rates[fault] ?? 0;
      return rate > 0 && random.next() < rate;
    },
  };
}

/** For tests: exactly what was announced happens, each as often as it was, at the next chance. */
export class ScriptedFaults implements FaultPlan {
  readonly #next: ProviderFault[] = [];

  next(...faults: ProviderFault[]): void {
    this.#next.push(...faults);
  }

  happens(fault: ProviderFault): boolean {
    const at = this.#next.indexOf(fault);
    if (at < 0) return false;
    this.#next.splice(at, 1);
    return true;
  }
}
