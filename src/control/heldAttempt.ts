/** The attempt that an agent asks something for, if it is that agent's. */
import { DroverError } from '../lib/errors.ts';
import type { Attempt } from '../model/attempt.ts';
import type { AttemptUid } from '../model/ids.ts';
import type { Job } from '../model/job.ts';
import type { State } from '../state/state.ts';
import type { Agents } from './agents.ts';

export interface Held {
  attempt: Attempt;
  job: Job;
}

export function heldAttempt(
  state: State,
  agents: Pick<Agents, 'workerOf'>,
  workerToken: string,
  uid: string,
  mayStop = false,
): Held {
  const { worker } = agents.workerOf(workerToken);
  const attempt = state.attempts.get(uid as AttemptUid);
  const job = attempt && state.jobs.get(attempt.job)?.job;
  if (job && attempt.worker === worker.id && (mayStop || attempt.state !== 'STOPPING')) {
    return { attempt, job };
  }
  throw new DroverError('STALE', `attempt ${uid} is not this worker's to run any more`);
}
