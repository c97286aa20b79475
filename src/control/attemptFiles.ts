/** What agents store for the attempts they run: whose it is, and from when on it counts. */
import { DroverError } from '../lib/errors.ts';
import type { AttemptUid } from '../model/ids.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { State } from '../state/state.ts';
import type { Agents } from './agents.ts';
import type { Committer } from './committer.ts';
import type { Mutate } from './mutate.ts';

export interface AttemptFileOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  agents: Pick<Agents, 'workerOf'>;
}

export function createAttemptFiles(
  options: AttemptFileOptions,
): Pick<Coordinator, 'addCheckpoint' | 'attemptAccess'> {
  const { state, mutate, committer, agents } = options;
  return {
    async addCheckpoint(workerToken, { uid, ...stored }) {
      const worker = agents.workerOf(workerToken).worker.id;
      const attempt = uid as AttemptUid;
      const result = mutate({ kind: 'add-checkpoint', worker, attempt, ...stored });
      if (result.kind !== 'done') {
        throw new DroverError('STALE', `attempt ${uid} is not this worker's to run any more`);
      }
      await committer.durable();
    },

    async attemptAccess(workerToken, uid) {
      const { worker } = agents.workerOf(workerToken);
      const attempt = state.attempts.get(uid as AttemptUid);
      if (attempt?.worker !== worker.id) return undefined;
      const { tenant, job, task } = attempt;
      await committer.durable();
      return { tenant, job, task };
    },
  };
}
