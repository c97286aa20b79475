/** The states of an attempt and the moves between them. */
import type { AttemptState } from '../../model/attempt.ts';
import { moved, type Moves } from './moves.ts';

export const ATTEMPT_MOVES = {
  start: { from: ['ASSIGNED'], to: 'STARTING' },
  run: { from: ['ASSIGNED', 'STARTING'], to: 'RUNNING' },
  stop: { from: ['ASSIGNED', 'STARTING', 'RUNNING'], to: 'STOPPING' },
  end: { from: ['ASSIGNED', 'STARTING', 'RUNNING', 'STOPPING'], to: 'ENDED' },
} as const satisfies Moves<AttemptState>;

export function moveAttempt(name: keyof typeof ATTEMPT_MOVES, from: AttemptState): AttemptState {
  return moved<AttemptState, typeof ATTEMPT_MOVES>(ATTEMPT_MOVES, name, from);
}
