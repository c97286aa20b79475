/** The states of an instance and the moves between them. */
import type { InstanceState } from '../../model/instance.ts';
import { moved, type Moves } from './moves.ts';

export const INSTANCE_MOVES = {
  /** The provider was called, or has it although the reply was lost. */
  request: { from: ['INTENDED'], to: 'REQUESTED' },
  /** The provider has started it. */
  boot: { from: ['INTENDED', 'REQUESTED'], to: 'BOOTING' },
  probe: { from: ['INTENDED', 'REQUESTED', 'BOOTING'], to: 'PROBING' },
  join: { from: ['INTENDED', 'REQUESTED', 'BOOTING', 'PROBING'], to: 'JOINED' },
  /** Its provider has put it back into its queue or on another machine. */
  restart: { from: ['BOOTING', 'PROBING', 'JOINED'], to: 'REQUESTED' },
  drain: { from: ['JOINED'], to: 'DRAINING' },
  destroy: {
    from: ['INTENDED', 'REQUESTED', 'BOOTING', 'PROBING', 'JOINED', 'DRAINING'],
    to: 'DESTROYING',
  },
  /** The provider does not have it (any more). */
  gone: {
    from: ['INTENDED', 'REQUESTED', 'BOOTING', 'PROBING', 'JOINED', 'DRAINING', 'DESTROYING'],
    to: 'DESTROYED',
  },
} as const satisfies Moves<InstanceState>;

export function moveInstance(
  name: keyof typeof INSTANCE_MOVES,
  from: InstanceState,
): InstanceState {
  return moved<InstanceState, typeof INSTANCE_MOVES>(INSTANCE_MOVES, name, from);
}

/** Asked for, and not yet there: capacity that comes. */
export function isComing(state: InstanceState): boolean {
  return (
    state === 'INTENDED' || state === 'REQUESTED' || state === 'BOOTING' || state === 'PROBING'
  );
}

/** It is wanted: coming, or at work. */
export function isWanted(state: InstanceState): boolean {
  return isComing(state) || state === 'JOINED';
}
