/** The colour of a state: the word always stands beside it. */
import type { Paint } from './io.ts';

const COLOURS: Record<string, keyof Paint> = {
  SUCCEEDED: 'green',
  ONLINE: 'green',
  JOINED: 'green',
  INTENDED: 'yellow',
  REQUESTED: 'yellow',
  BOOTING: 'yellow',
  PROBING: 'yellow',
  DRAINING: 'yellow',
  DESTROYING: 'yellow',
  DESTROYED: 'dim',
  RUNNING: 'blue',
  PENDING: 'yellow',
  ASSIGNED: 'yellow',
  SUSPECT: 'yellow',
  FAILED: 'red',
  UNSCHEDULABLE: 'red',
  LOST: 'red',
  CANCELLED: 'dim',
};

export function statePaint(state: string, paint: Paint): ((text: string) => string) | undefined {
  const colour = COLOURS[state];
  return colour && paint[colour];
}
