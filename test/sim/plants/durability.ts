/** Planted bugs in what is kept and answered: commits, keys, epochs. */
import type { Plant } from './plant.ts';

export const DURABILITY_PLANTS: Plant[] = [
  {
    name: 'ack-before-commit',
    what: 'answers do not wait for the commit',
    shownBy: ['I2', 'I13'],
    patches: [
      {
        file: 'src/control/committer.ts',
        find: 'if (!state.changes.empty || dead) {',
        replace: 'changed(); if (1 > 0) return Promise.resolve();\n      if (dead) {',
      },
    ],
  },
  {
    name: 'failed-commit-ignored',
    what: 'a commit that failed or is unknown counts as done',
    shownBy: ['I2', 'I12', 'I13'],
    patches: [
      {
        file: 'src/control/committer.ts',
        find: 'dead = true;\n      onFatal(error);\n      return;',
        replace: 'void onFatal;',
      },
    ],
  },
  {
    name: 'sync-answered-before-commit',
    what: 'orders and acknowledgements leave for agents before they are on disk',
    shownBy: ['I2'],
    patches: [
      {
        file: 'src/control/agents.ts',
        find: 'await committer.durable();\n    return reply;',
        replace: 'return reply;',
      },
    ],
  },
  {
    name: 'keys-forgotten',
    what: 'idempotency keys are not rebuilt after a restart',
    shownBy: ['I3'],
    patches: [
      {
        file: 'src/state/state.ts',
        find: 'this.idempotency.set(idempotencyKey(tenant, key), entry);',
        replace: 'void [tenant, key, entry];',
      },
    ],
  },
  {
    name: 'body-not-compared',
    what: 'a key takes another body',
    shownBy: ['I3'],
    patches: [
      {
        file: 'src/state/submit.ts',
        find: 'if (known.bodyHash !== bodyHash)',
        replace: 'if (known.bodyHash === null)',
      },
    ],
  },
  {
    name: 'epoch-from-the-clock',
    what: 'the epoch is the time, also when the clock went back',
    shownBy: ['I12'],
    patches: [
      {
        file: 'src/store/dialects/sqlite.ts',
        find: 'SET epoch = max(epoch + 1, ?)',
        replace: 'SET epoch = ?',
      },
    ],
  },
];
