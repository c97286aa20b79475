/** The states of a worker and the moves between them. */
import type { WorkerState } from '../../model/worker.ts';
import { moved, type Moves } from './moves.ts';

export const WORKER_MOVES = {
  suspect: { from: ['ONLINE'], to: 'SUSPECT' },
  recover: { from: ['SUSPECT'], to: 'ONLINE' },
  lose: { from: ['ONLINE', 'SUSPECT'], to: 'LOST' },
} as const satisfies Moves<WorkerState>;

export function moveWorker(name: keyof typeof WORKER_MOVES, from: WorkerState): WorkerState {
  return moved<WorkerState, typeof WORKER_MOVES>(WORKER_MOVES, name, from);
}
