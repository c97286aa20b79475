/** The reader thread: history, on connections that cannot write. */
import { workerData } from 'node:worker_threads';
import { serve } from '../../lib/thread.ts';
import { historyServer } from '../../store/historyCalls.ts';
import { openHistory, type StoreSettings } from '../../store/open.ts';
import type { ThreadData } from './start.ts';

const { port, options } = workerData as ThreadData<StoreSettings>;
serve(port, historyServer(openHistory(options)));
