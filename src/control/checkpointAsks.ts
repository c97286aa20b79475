/** Checkpoints asked for: handed to the agent with its next sync, in memory only. */
import { DroverError } from '../lib/errors.ts';
import { indexOfTask, type AttemptUid, type JobId, type WorkerId } from '../model/ids.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { State } from '../state/state.ts';
import type { Sessions } from './sessions.ts';

export class CheckpointAsks {
  readonly #waiting = new Map<WorkerId, Set<AttemptUid>>();

  ask(worker: WorkerId, attempt: AttemptUid): void {
    const waiting = this.#waiting.get(worker);
    if (waiting) waiting.add(attempt);
    else this.#waiting.set(worker, new Set([attempt]));
  }

  /** One whose reply is lost is not sent again: whoever looks for the checkpoint asks anew. */
  take(worker: WorkerId): AttemptUid[] {
    const waiting = this.#waiting.get(worker);
    if (!waiting) return [];
    this.#waiting.delete(worker);
    return [...waiting];
  }
}

interface CheckpointCallOptions {
  state: State;
  sessions: Sessions;
  checkpointAsks: CheckpointAsks;
  getJob: Coordinator['getJob'];
}

export function createCheckpointCalls(
  options: CheckpointCallOptions,
): Pick<Coordinator, 'requestCheckpoint'> {
  const { state, sessions, checkpointAsks: asks, getJob } = options;
  return {
    async requestCheckpoint(who, job, task) {
      const { spec } = await getJob(who, job);
      if (!spec?.checkpoint) {
        throw new DroverError('CONFLICT', `job ${job} keeps no checkpoints`, {
          hint: 'submit it with --checkpoint DIR, or a checkpoint: in its file',
        });
      }
      const live = state.jobs.get(job as JobId);
      const running = [...(live?.attempts.values() ?? [])].filter(
        (attempt) =>
          attempt.state === 'RUNNING' && (task === undefined || indexOfTask(attempt.task) === task),
      );
      if (running.length === 0) {
        const what = task === undefined ? `job ${job}` : `task ${job}.${task}`;
        throw new DroverError('CONFLICT', `${what} is not running`, {
          hint: `see where it is with: drover job ${job}`,
        });
      }
      for (const attempt of running) asks.ask(attempt.worker, attempt.uid);
      sessions.wakeSoon(running.map(({ worker }) => worker));
      return running.map((attempt) => attempt.task);
    },
  };
}
