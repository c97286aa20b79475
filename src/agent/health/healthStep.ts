/**
 * Health around attempts: one that needs a GPU which is known to be broken does not start here, and
 * one that failed while its machine did says so, so that it goes elsewhere and costs nothing.
 */
import type { AttemptOrder } from '../../protocol/agent.ts';
import type { Step } from '../around.ts';
import type { End } from '../runtimes/ending.ts';
import { Unprepared } from '../runtimes/around.ts';
import type { Health } from './health.ts';

/** What the step asks; all but `lookNow` answer at once. */
export type HealthView = Pick<Health, 'attemptMoved' | 'blame' | 'lookNow' | 'isDraining'>;

export function createHealthStep(health: HealthView): Step {
  return {
    needsPreparation: (order) => gpusOf(order).length > 0,
    async prepare({ order }) {
      const gpus = gpusOf(order);
      health.attemptMoved(true);
      const reason = health.blame(gpus);
      if (reason !== undefined) throw new Unprepared(reason, { hostFault: true });
    },
    watch({ order }) {
      const hasGpus = gpusOf(order).length > 0;
      health.attemptMoved(hasGpus);
      return () => health.attemptMoved(hasGpus);
    },
    needsFinish: (order, _, how) =>
      failedByItself(how) && (gpusOf(order).length > 0 || health.isDraining),
    async finish({ order }) {
      const gpus = gpusOf(order);
      if (gpus.length > 0 && health.blame(gpus) === undefined) await health.lookNow();
      const reason = health.blame(gpus);
      if (reason === undefined) return {};
      return { hostFault: true, message: `its machine has failed: ${reason}` };
    },
  };
}

/** Neither well, nor as somebody asked for, nor for want of memory of its own. */
function failedByItself({ cause, exitCode }: End): boolean {
  return (cause === 'exited' && exitCode !== 0) || cause === 'signalled';
}

const gpusOf = ({ devices }: AttemptOrder): number[] =>
  devices.filter(({ kind }) => kind === 'gpu').map(({ index }) => index);
