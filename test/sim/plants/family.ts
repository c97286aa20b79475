/** Planted bugs in jobs that submit jobs. */
import type { Plant } from './plant.ts';

export const FAMILY_PLANTS: Plant[] = [
  {
    name: 'children-outlive-their-parent',
    what: 'the end of a job ends nothing that it submitted',
    shownBy: ['I15'],
    patches: [
      {
        file: 'src/state/endings.ts',
        find: 'endChildren(state, live.job, nowMs);',
        replace: '',
      },
    ],
  },
  {
    name: 'children-of-the-dead',
    what: 'a job that has ended can still submit others',
    shownBy: ['I15'],
    patches: [
      {
        file: 'src/state/submit.ts',
        find: 'return parent?.job.endedAtMs === null && parent.job.cancelRequestedAtMs === null;',
        replace: 'return parent !== null;',
      },
    ],
  },
];
