/** The planner thread: thinks about placement without holding up anybody. */
import { workerData } from 'node:worker_threads';
import { createPlanner } from '../../control/planner.ts';
import { systemRandom } from '../../lib/random.ts';
import { serve } from '../../lib/thread.ts';
import type { ThreadData } from './start.ts';

const { port } = workerData as ThreadData<null>;
serve(port, createPlanner(systemRandom));
