/** Planted bugs in who goes when and where: prospects, jobs after others, limits, tenants, logs. */
import type { Plant } from './plant.ts';

export const SCHEDULE_PLANTS: Plant[] = [
  {
    name: 'promised-twice',
    what: 'what is leaving is promised to whoever asks, though another was nominated for it',
    shownBy: ['I7'],
    patches: [
      {
        file: 'src/state/nominations.ts',
        find: "if (claim?.state === 'RELEASING') leaving.add(claim);",
        replace:
          "if (claim?.state === 'RELEASING') leaving.add(claim);}\n" +
          'for (const { claim } of state.nominations.values()) {' +
          'if (claim.worker === id) leaving.add(claim);',
      },
    ],
  },
  {
    name: 'gang-nominated-in-parts',
    what: 'a member of a gang gives up its prospect, the others keep theirs',
    shownBy: ['I8'],
    patches: [
      {
        file: 'src/state/nominations.ts',
        find: 'dropNominationsOf(state, nomination.live, mutation.reason, nowMs);',
        replace: 'dropNomination(state, nomination, mutation.reason, nowMs);',
      },
    ],
  },
  {
    name: 'preemption-is-a-failure',
    what: 'who makes way for others loses one of his own tries',
    shownBy: ['I4'],
    patches: [
      {
        file: 'src/core/retry.ts',
        find: "if (ending.cause === 'lost' || ending.cause === 'preempted') return true;",
        replace: "if (ending.cause === 'lost') return true;",
      },
    ],
  },
  {
    name: 'after-not-guarded',
    what: 'a plan may start what waits for another job',
    shownBy: ['I13'],
    patches: [
      {
        file: 'src/state/assign.ts',
        find: "if (live.waitsFor) return refuse(stale('the job waits for another one'));",
        replace: '',
      },
    ],
  },
  {
    name: 'after-cancel-is-ok',
    what: 'a job that was cancelled counts as one that ended well',
    shownBy: ['I13'],
    patches: [
      {
        file: 'src/core/lifecycle/after.ts',
        find: "ok: (state) => state === 'SUCCEEDED',",
        replace: "ok: (state) => state === 'SUCCEEDED' || state === 'CANCELLED',",
      },
    ],
  },
  {
    name: 'after-forgotten',
    what: 'who waits for another job is not told when it has ended',
    shownBy: ['L1', 'L2'],
    patches: [
      {
        file: 'src/state/after.ts',
        find: 'for (const task of live.tasks) state.deltas.tasks.add(task);',
        replace: '',
      },
    ],
  },
  {
    name: 'after-lost-by-restart',
    what: 'after a restart nobody waits for anybody',
    shownBy: ['I13'],
    patches: [
      {
        file: 'src/state/state.ts',
        find: 'for (const live of this.jobs.values()) waitForOthers(this, live, 0);',
        replace: '',
      },
    ],
  },
  {
    name: 'array-limit-ignored',
    what: 'a plan may start more of an array than it asked for',
    shownBy: ['I7'],
    patches: [
      {
        file: 'src/state/assign.ts',
        find: "if (shape.kind !== 'array' || shape.limit === 0) return null;",
        replace: 'if (1 > 0) return null;',
      },
    ],
  },
  {
    name: 'array-never-called-back',
    what: 'an array that was at its limit is not looked at again',
    shownBy: ['L1', 'L2'],
    patches: [
      {
        file: 'src/core/schedule/view.ts',
        find: 'if (claims && of.queue.callBack(job)) this.classes.open.add(of);',
        replace: '',
      },
    ],
  },
  {
    name: 'exclusive-shared',
    what: 'somebody joins who wanted a worker for himself alone',
    shownBy: ['I7'],
    patches: [
      {
        file: 'src/core/placement/shape.ts',
        find: "if (state.taken || (placement.exclusive && !state.idle)) return 'exclusive';",
        replace: "if (state.taken) return 'exclusive';",
      },
    ],
  },
  {
    name: 'list-of-all-tenants',
    what: 'the list of what runs shows the jobs of other tenants',
    shownBy: ['I9'],
    patches: [
      {
        file: 'src/control/jobs.ts',
        find: 'if (job.tenant !== who.tenant || (before !== undefined && job.id',
        replace: 'if ((before !== undefined && job.id',
      },
    ],
  },
  {
    name: 'cancel-of-anybody',
    what: 'whoever knows the id of a job may cancel it',
    shownBy: ['I9'],
    patches: [
      {
        file: 'src/control/jobs.ts',
        find: 'return live?.job.tenant === who.tenant && mine(who, live.job) ? live : undefined;',
        replace: 'return live;',
      },
    ],
  },
  {
    name: 'log-ends-early',
    what: 'a follow ends with the job, not with the last byte its agents announced',
    shownBy: ['L5'],
    patches: [
      {
        file: 'src/control/logAccess.ts',
        find: 'if (endedAtMs !== null && !(await tailMissing(who, job, endedAtMs, metrics))) {',
        replace: 'if (endedAtMs !== null && tailMissing) {',
      },
    ],
  },
  {
    name: 'events-page-skips',
    what: 'the next page of events leaves one out',
    shownBy: ['L5'],
    patches: [
      {
        file: 'src/control/jobLists.ts',
        find: '.events(job, [epoch, seq], page.limit + 1);',
        replace: '.events(job, [epoch, seq === 0 ? 0 : seq + 1], page.limit + 1);',
      },
    ],
  },
];
