/** The planner thread: thinks about placement without holding up anybody. */
import { workerData } from 'node:worker_threads';
import { createPlanner } from '../../control/planner.ts';
import type { SchedulePolicy } from '../../core/schedule/plan.ts';
import { systemRandom } from '../../lib/random.ts';
import { serve } from '../../lib/thread.ts';
import type { ThreadData } from './start.ts';

const { port, options } = workerData as ThreadData<SchedulePolicy>;
serve(port, createPlanner(systemRandom, options));
