/** What the controller is told of the machine's health: all of it, whenever it has changed. */
import type { SyncRequest } from '../../protocol/agent.ts';
import type { Report } from '../reports.ts';
import type { Health } from './health.ts';

export function createHealthReport(
  health: Pick<Health, 'version' | 'problems' | 'onChange'>,
): Report {
  /** A controller that knows nothing of this worker takes it for a healthy one. */
  let last = { worker: '', epoch: 0, version: 0 };
  return {
    news(worker, epoch) {
      const { version } = health;
      const isKnown = worker === last.worker && epoch === last.epoch && version === last.version;
      if (isKnown || version === 0) return undefined;
      const parts: Pick<SyncRequest, 'health'> = { health: { problems: [...health.problems()] } };
      return { parts, told: (by) => (last = { worker, epoch: by, version }) };
    },
    onChange: (changed) => health.onChange(changed),
  };
}
