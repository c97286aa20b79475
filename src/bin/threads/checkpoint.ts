/** The checkpoint thread: copies the WAL into the database file while the writer goes on. */
import { workerData } from 'node:worker_threads';
import { serve } from '../../lib/thread.ts';
import { createCheckpointer } from '../../store/dialects/walKeeper.ts';
import type { ThreadData } from './start.ts';

const { port, options: file } = workerData as ThreadData<string>;
serve(port, createCheckpointer(file));
