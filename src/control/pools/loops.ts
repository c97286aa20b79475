/** The loops of pools with a provider: one each, so that a slow provider holds up no other. */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { State } from '../../state/state.ts';
import type { Committer } from '../committer.ts';
import type { Loop } from '../loop.ts';
import type { Mutate } from '../mutate.ts';
import type { Planner } from '../planner.ts';
import type { Sessions } from '../sessions.ts';
import { CapacityTold, createCapacityStep } from './capacityStep.ts';
import { createEndsStep } from './ends.ts';
import type { Launching } from './launching.ts';
import { PoolStatus, type ManagedPool } from './pool.ts';
import { createPoolStep } from './poolStep.ts';

export interface PoolLoopOptions {
  pools: readonly ManagedPool[];
  /** Null: there are no pools to launch in. */
  launching: Launching | null;
  state: State;
  planner: Planner;
  settled: () => Promise<void>;
  mutate: Mutate;
  committer: Committer;
  sessions: Pick<Sessions, 'lastContactBootMs'>;
  clock: Clock;
  log: Log;
  capacityMs: number;
  startLoop: (name: string, periodMs: number, step: () => Promise<void>) => Loop;
}

export interface PoolLoops {
  find(pool: string): { pool: ManagedPool; status: PoolStatus } | undefined;
  hint(pool: string): void;
  /** Asks its provider now; resolves when it has answered, or could not. */
  look(pool: string): Promise<void>;
  told: CapacityTold;
}

export function startPoolLoops(options: PoolLoopOptions): PoolLoops {
  const { state, mutate, clock, startLoop } = options;
  const told = new CapacityTold();
  const pools = options.pools.map((pool) => ({ pool, status: new PoolStatus() }));
  const loops = new Map<string, Loop>();
  const find: PoolLoops['find'] = (name) => pools.find(({ pool }) => pool.name === name);
  const hint = (name: string): void => loops.get(name)?.hint();
  const { launching } = options;
  if (launching && pools.length > 0) {
    const hintCapacity = (): void => capacity.hint();
    for (const { pool, status } of pools) {
      const step = createPoolStep({ ...options, launching, pool, status, hint: hintCapacity });
      loops.set(pool.name, startLoop(`pool ${pool.name}`, pool.settings.pollMs, step));
    }
    const step = createCapacityStep({
      ...options,
      pools,
      told,
      hintPool: hint,
      hint: hintCapacity,
    });
    const capacity = startLoop('capacity', options.capacityMs, step);
    startLoop('ends', options.capacityMs, createEndsStep(state, mutate, clock));
  }
  return {
    ...{ find, hint, told },
    async look(name) {
      const loop = loops.get(name);
      const status = find(name)?.status;
      if (!loop || !status) return;
      status.nextLookAtMs = 0;
      loop.hint();
      await loop.settled();
    },
  };
}
