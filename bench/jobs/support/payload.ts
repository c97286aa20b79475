/** The job that is submitted everywhere: small, but with what a real one has. */

export const PAYLOAD = {
  name: 'bench',
  command: ['true'],
  env: { EPOCHS: '3', SEED: '1' },
  labels: { run: 'bench' },
};

export const BATCH_SIZE = 1000;
