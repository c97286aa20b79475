/** The client's half of explanations. */
import type { Coordinator } from '../coordinator.ts';
import type { Connection } from './connection.ts';
import * as schedule from './scheduleMessages.ts';

export function scheduleCalls({ coordinator, call, by }: Connection): Pick<Coordinator, 'why'> {
  return {
    why: (who, job) =>
      call(
        by(who),
        (options) => coordinator.explainJob({ job }, options),
        ({ why }) => schedule.whyFromWire(why),
      ),
  };
}
