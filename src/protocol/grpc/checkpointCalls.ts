/** The client's half of checkpoints. */
import type { Coordinator } from '../coordinator.ts';
import type { Connection } from './connection.ts';
import { checkpointFromWire } from './jobMessages.ts';

export function checkpointCalls({
  coordinator,
  call,
  by,
}: Connection): Pick<Coordinator, 'listCheckpoints' | 'requestCheckpoint'> {
  return {
    listCheckpoints: (who, job, { task, ...page }) =>
      call(
        by(who),
        (options) => coordinator.listCheckpoints({ job, page, task }, options),
        ({ checkpoints, nextCursor }) => ({
          items: checkpoints.map(checkpointFromWire),
          nextCursor: nextCursor ?? null,
        }),
      ),
    requestCheckpoint: (who, job, task) =>
      call(
        by(who),
        (options) => coordinator.requestCheckpoint({ job, task }, options),
        ({ tasks }) => tasks,
      ),
  };
}
