/** The one way to change the state: apply, note that there is something to write and to plan. */
import type { Clock } from '../lib/clock.ts';
import { apply } from '../state/apply.ts';
import type { Mutation, Result } from '../state/mutations.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';

export type Mutate = (mutation: Mutation) => Result;

export function createMutate(
  state: State,
  clock: Clock,
  committer: Committer,
  hintSchedule: () => void,
): Mutate {
  return (mutation) => {
    const result = apply(state, mutation, clock.now());
    committer.changed();
    if (!state.deltas.empty) hintSchedule();
    return result;
  };
}
