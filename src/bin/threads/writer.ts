/** The writer thread: the only one that changes the database. */
import { workerData } from 'node:worker_threads';
import { serve } from '../../lib/thread.ts';
import { openStore, type StoreSettings } from '../../store/open.ts';
import { startThread, type ThreadData } from './start.ts';

const { port, options } = workerData as ThreadData<StoreSettings>;
const store = openStoreLater();
serve(port, {
  lead: async (nowMs: number, newClusterId: string) => (await store()).lead(nowMs, newClusterId),
  commit: async (batch: never) => (await store()).commit(batch),
  close: async () => (await store()).close(),
});

/** Opened by the first call, so that what goes wrong is that call's answer. */
function openStoreLater() {
  let opened: ReturnType<typeof openStore> | null = null;
  return async () => (opened ??= openStore(withCheckpoints(options), lost));
}

function withCheckpoints(settings: StoreSettings): StoreSettings {
  if (settings.kind !== 'sqlite') return settings;
  const { calls } = startThread<{ checkpoint(): Promise<void> }, string>(
    'checkpoint',
    settings.file,
    ['checkpoint'],
    (_name, error) => lost(error as Error),
  );
  return { ...settings, checkpoint: () => calls.checkpoint() };
}

/** Ends this thread, and with it the process. */
function lost(error: Error): never {
  throw error;
}
