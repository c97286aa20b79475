/** What is submitted everywhere, and how many callers submit it. */

/** Small, but with what a real job has. */
export const PAYLOAD = {
  name: 'bench',
  command: ['true'],
  env: { EPOCHS: '3', SEED: '1' },
  labels: { run: 'bench' },
};

export const BATCH_SIZE = 1000;
/** Callers at once: HTTP connections, calls in flight, PostgreSQL connections. */
export const CONNECTIONS = 64;
