/** Planted bugs in what tasks resume from. */
import type { Plant } from './plant.ts';

export const CHECKPOINT_PLANTS: Plant[] = [
  {
    name: 'checkpoints-not-fenced',
    what: "an old attempt's checkpoint counts for the task's newest attempt",
    shownBy: ['I14'],
    patches: [
      {
        file: 'src/state/checkpoints.ts',
        find: 'const attempt = state.attempts.get(mutation.attempt);',
        replace:
          'const attempt = state.attempts.get(mutation.attempt) ?? [...state.attempts.values()]' +
          ".find((one) => mutation.attempt.startsWith(one.task + '.'));",
      },
      {
        file: 'src/state/checkpoints.ts',
        find: "if (attempt.worker !== mutation.worker) return stale('it runs on another worker');",
        replace: '',
      },
    ],
  },
  {
    name: 'oldest-checkpoint-first',
    what: 'an attempt resumes from the oldest checkpoint that is kept',
    shownBy: ['I14'],
    patches: [
      {
        file: 'src/control/orders.ts',
        find: '.toReversed();',
        replace: '.slice();',
      },
    ],
  },
  {
    name: 'checkpoints-forgotten-at-a-restart',
    what: 'a controller that starts again does not read what tasks have saved',
    shownBy: ['I14'],
    patches: [
      {
        file: 'src/store/rebuild.ts',
        find: 'checkpoints: checkpoints.map(decodeCheckpoint),',
        replace: 'checkpoints: checkpoints.slice(0, 0).map(decodeCheckpoint),',
      },
    ],
  },
  {
    name: 'overtaken-checkpoint-counts',
    what: 'a report that comes twice, the second time late, is the newest checkpoint',
    shownBy: ['I14'],
    patches: [
      {
        file: 'src/state/checkpoints.ts',
        find: 'return takenBootMs === 0 || takenBootMs >= newest.takenBootMs;',
        replace: 'return true;',
      },
    ],
  },
];
