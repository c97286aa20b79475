/** The reader thread: history, on connections that cannot write. */
import { workerData } from 'node:worker_threads';
import { serve } from '../../lib/thread.ts';
import { historyServer, type HistoryCalls } from '../../store/historyCalls.ts';
import { openHistory, type StoreSettings } from '../../store/open.ts';
import type { ThreadData } from './start.ts';

const { port, options } = workerData as ThreadData<StoreSettings>;
let opened: HistoryCalls | null = null;
/** By the first question: the thread is there before the database is. */
const history = (): HistoryCalls => (opened ??= historyServer(openHistory(options)));

serve(port, {
  tenant: (tenant, name, args) => history().tenant(tenant, name, args),
  system: (name, args) => history().system(name, args),
  close: async () => opened?.close(),
} satisfies HistoryCalls);
