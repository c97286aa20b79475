/** Runs the charge loop where somebody has a limit that time uses up. */
import type { Budget } from '../../model/budget.ts';
import type { Mutation, Result } from '../../state/mutations.ts';
import type { State } from '../../state/state.ts';
import { createChargeStep } from '../charges.ts';
import type { Agenda } from './agenda.ts';

const PERIOD_MS = 60_000;
/** Work that is held by a budget goes on with the next month at the latest. */
const LONGEST_HOLD_MS = 32 * 86_400_000;

export interface ChargingOptions {
  state: State;
  agenda: Agenda;
  mutate: (mutation: Mutation) => Result;
  hint: () => void;
}

export class Charging {
  readonly #options: ChargingOptions;
  readonly #step: () => Promise<void>;
  #started = false;
  #wentOnAtMs: number;

  constructor(options: ChargingOptions) {
    const { state, agenda, mutate, hint } = options;
    this.#options = options;
    this.#step = createChargeStep(state, mutate, agenda, hint);
    this.#wentOnAtMs = agenda.now();
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#next();
  }

  /** Something was placed or has ended. */
  wentOn(): void {
    this.#wentOnAtMs = this.#options.agenda.now();
  }

  /** Whether what waits may be waiting for a new day or month. */
  get mayRelease(): boolean {
    const { state, agenda } = this.#options;
    const idleMs = agenda.now() - this.#wentOnAtMs;
    return this.#started && state.jobs.size > 0 && idleMs < LONGEST_HOLD_MS;
  }

  #next(): void {
    const { agenda } = this.#options;
    const step = (): void => {
      // Nothing in the step waits for anything: it is over when this returns.
      void this.#step();
      this.#next();
    };
    agenda.at(agenda.now() + PERIOD_MS, step, true);
  }
}

export function hasLimit(budget: Budget): boolean {
  const { deviceHoursPerDay, deviceHoursPerMonth, microsPerDay, microsPerMonth } = budget;
  const limits = [deviceHoursPerDay, deviceHoursPerMonth, microsPerDay, microsPerMonth];
  return limits.some((limit) => limit !== null);
}
