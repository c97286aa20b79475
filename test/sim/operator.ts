/** The operator: sets, changes and deletes budgets while work runs, and has it charged. */
import type { Budget } from '../../src/model/budget.ts';
import type { Controller } from '../../src/control/controller.ts';
import type { AttemptUid } from '../../src/model/ids.ts';
import { Violation } from './checkers/violation.ts';
import type { Cluster } from './cluster.ts';
import { PEOPLE } from './people.ts';
import { UNIT_MICROS } from './sites.ts';
import type { Workload } from './workload.ts';

const HOUR_S = 3600;
const MOST_CHANGES = 6;
const MOST_CHARGES = 6;

export class Operator {
  readonly #cluster: Cluster;
  readonly #workload: Workload;
  /** Whether budgets stay when the faults are over, as tight as they can be. */
  readonly #keepsBudgets: boolean;

  constructor(cluster: Cluster, workload: Workload) {
    this.#cluster = cluster;
    this.#workload = workload;
    this.#keepsBudgets = cluster.world.chance(0.5);
  }

  schedule(overMs: number): void {
    const { world } = this.#cluster;
    const times = (most: number, run: () => void): void => {
      const count = world.chance(0.6) ? world.between(1, most) : 0;
      for (let i = 0; i < count; i++) world.after(world.between(0, overMs), run);
    };
    times(MOST_CHANGES, () => this.#change());
    times(MOST_CHARGES, () => this.#charge());
  }

  /** In peace a budget may delay work, but no job waits for ever. */
  makeRoom(): void {
    const { controller } = this.#cluster.controller;
    for (const { budget } of controller ? [...controller.state.accounts.all()] : []) {
      if (!budget) continue;
      const { tenant, user } = budget;
      if (!this.#keepsBudgets)
        controller?.mutate({ kind: 'delete-budget', tenant, user, by: 'op' });
      else {
        const roomy = { ...UNLIMITED, tenant, user, deviceMillis: this.#largestNeed(tenant, user) };
        const isSet = sameLimits(budget, roomy);
        if (!isSet) controller?.mutate({ kind: 'set-budget', budget: roomy, by: 'op' });
      }
    }
  }

  /** When all is over nobody has anything set aside. */
  checkHolds(): void {
    const state = this.#cluster.controller.controller?.state;
    for (const { account, held } of state?.accounts.all() ?? []) {
      if (held.deviceMillis === 0 && held.deviceMs === 0 && held.micros === 0) continue;
      const who = `${account.tenant}/${account.user}`;
      throw new Violation('I5', `${who} still has ${JSON.stringify(held)} set aside`);
    }
  }

  #change(): void {
    const { world, coverage, controller: process } = this.#cluster;
    const { controller } = process;
    if (!controller?.state || !process.process?.alive || process.process.paused) return;
    const { tenant, user: name } = world.pick(PEOPLE);
    const user = world.chance(0.5) ? '' : name;
    const known = controller.state.accounts.of(tenant, user).budget;
    if (known && world.chance(0.3)) {
      coverage.saw('budget deleted');
      world.note('operator', `deletes the budget of ${tenant}/${user}`);
      controller.mutate({ kind: 'delete-budget', tenant, user, by: 'op' });
      return;
    }
    const budget = this.#draw(tenant, user);
    coverage.saw(known ? 'budget changed' : 'budget set');
    world.note('operator', `sets ${JSON.stringify(budget)}`);
    controller.mutate({ kind: 'set-budget', budget, by: 'op' });
  }

  #draw(tenant: string, user: string): Budget {
    const { world } = this.#cluster;
    const some = (limit: () => number): number | null => (world.chance(0.4) ? limit() : null);
    // Holds are for an hour: a limit a little above a few of them lets as many run, for a while.
    const hours = (): number => world.between(1, 4) + world.between(0, 20) / HOUR_S;
    const micros = (): number => Math.round(hours() * UNIT_MICROS * HOUR_S);
    return {
      ...{ tenant, user },
      weight: world.pick([0.5, 1, 3]),
      deviceMillis: some(() => world.between(0, 8) * 500),
      deviceHoursPerDay: some(hours),
      deviceHoursPerMonth: some(hours),
      microsPerDay: some(micros),
      microsPerMonth: some(micros),
      mode: world.chance(0.7) ? 'hard' : 'soft',
      atLimit: world.chance(0.5) ? 'finish' : 'stop',
      version: 0,
    };
  }

  /** At any time and twice over: charges come to the same. */
  #charge(): void {
    const { world, controller: process } = this.#cluster;
    const { controller } = process;
    if (!controller || !process.process?.alive || process.process.paused) return;
    const attempts = uidsOf(controller).filter(() => world.chance(0.7));
    controller.mutate({ kind: 'charge', attempts });
    if (world.chance(0.3)) controller.mutate({ kind: 'charge', attempts });
  }

  #largestNeed(tenant: string, user: string): number {
    let largest = 0;
    for (const { person, spec } of this.#workload.work) {
      if (person.tenant !== tenant || (user !== '' && person.user !== user)) continue;
      const { device } = spec.resources;
      const members = spec.shape.kind === 'gang' ? spec.shape.size : 1;
      largest = Math.max(largest, device ? device.count * device.share * members : 0);
    }
    return largest;
  }
}

const UNLIMITED: Omit<Budget, 'tenant' | 'user'> = {
  weight: 1,
  deviceMillis: null,
  deviceHoursPerDay: null,
  deviceHoursPerMonth: null,
  microsPerDay: null,
  microsPerMonth: null,
  mode: 'hard',
  atLimit: 'finish',
  version: 0,
};

function sameLimits(a: Budget, b: Budget): boolean {
  let name: keyof Budget;
  for (name in a) if (name !== 'version' && a[name] !== b[name]) return false;
  return true;
}

function uidsOf({ state }: Controller): AttemptUid[] {
  return [...state.attempts.keys()];
}
