/** The threads that help the state thread. They are started first and load their code meanwhile. */
import { workerData } from 'node:worker_threads';
import type { Planner } from '../../control/planner.ts';
import type { SchedulePolicy } from '../../core/schedule/plan.ts';
import { createLog } from '../../lib/log.ts';
import type { Store } from '../../store/contract.ts';
import type { HistoryCalls } from '../../store/historyCalls.ts';
import type { StoreSettings } from '../../store/open.ts';
import type { LogCalls, LogThreadOptions } from './logs.ts';
import { startThread, type ThreadData } from './start.ts';
import type { StateThreadOptions } from './stateParts.ts';

const { options } = workerData as ThreadData<StateThreadOptions>;
export const log = createLog('controller', options.level);
export const writer = startThread<Pick<Store, 'lead' | 'commit' | 'close'>, StoreSettings>(
  'writer',
  options.store,
  ['lead', 'commit', 'close'],
  died,
);
export const reader = startThread<HistoryCalls, StoreSettings>(
  'reader',
  options.store,
  ['tenant', 'system', 'close'],
  died,
);
export const logs = startThread<LogCalls, LogThreadOptions>(
  'logs',
  options.logs,
  [
    ...(['append', 'read', 'wait', 'offsets', 'close'] as const),
    ...(['metricsAppend', 'metricsRead', 'metricsWait', 'metricsOffsets'] as const),
  ],
  died,
);
export const planner = startThread<Planner, SchedulePolicy>(
  'planner',
  options.controller.schedule,
  ['plan', 'explain', 'demand', 'preview'],
  died,
);

/** A thread's process.exit ends only the thread; its end is what ends the process. */
export function died(name: string, error: unknown): void {
  log.error({ thread: name, err: error }, 'a part of the controller has failed: stopping');
  process.exit(1);
}
