/**
 * L4: when the faults are over and nothing waits, a machine that costs money and has nothing to do
 * is given back within its pool's idle timeout and a little, down to the pool's smallest number;
 * and one that never joins is given up within its boot timeout.
 */
import type { FakeAccount } from '../../../src/providers/fake/account.ts';
import type { FakeMachine } from '../../../src/providers/fake/machine.ts';
import type { PoolSettings } from '../../../src/model/poolSettings.ts';
import { must } from './violation.ts';

/** Looks, plans, a drain, a call that is repeated, and leases of agents that died in the storm. */
const LITTLE_MS = 150_000;

export class ReleasedChecker {
  /** By machine: since when it has had nothing to do, as the world knows. */
  readonly #idleSince = new Map<FakeMachine, number>();

  /** `busy`: something runs on it. `demand`: work waits that it might be kept for. */
  look(
    account: FakeAccount,
    settings: PoolSettings,
    busy: (machine: FakeMachine) => boolean,
    nowMs: number,
  ): void {
    const idle = account.existing().filter((machine) => !machine.leaving && !busy(machine));
    for (const machine of this.#idleSince.keys()) {
      if (!idle.includes(machine)) this.#idleSince.delete(machine);
    }
    const boundMs = Math.max(settings.idleTimeoutMs, settings.bootTimeoutMs) + LITTLE_MS;
    let late = 0;
    for (const machine of idle) {
      const sinceMs = this.#idleSince.get(machine) ?? nowMs;
      this.#idleSince.set(machine, sinceMs);
      if (nowMs - sinceMs <= boundMs) continue;
      const { handle, order, phase } = machine;
      must(
        ++late <= settings.min,
        'L4',
        () => `${handle} (${phase}, ${order.label}) has nothing to do since ${sinceMs / 1000}`,
      );
    }
  }

  /** Work came: whoever idled may be wanted again. */
  forget(): void {
    this.#idleSince.clear();
  }
}
