/** Planted bugs in how machines come and go. */
import type { Plant } from './plant.ts';

export const MACHINE_PLANTS: Plant[] = [
  {
    name: 'intent-after-call',
    what: 'a provider is asked for machines before the intent is on disk',
    story: 'provision',
    shownBy: ['I6'],
    patches: [
      {
        file: 'src/control/pools/launching.ts',
        find: 'await committer.durable();\n    status.follow(clock);\n    status.backoff',
        replace: 'status.backoff',
      },
    ],
  },
  {
    name: 'no-listing-is-none',
    what: 'a listing that failed is read as one without machines',
    story: 'provision',
    shownBy: ['I1', 'I6', 'I7'],
    patches: [
      {
        file: 'src/control/pools/poolStep.ts',
        find: "if (listing.kind === 'unknown') {",
        replace: "if (listing.kind === 'unknown') { hear([]);",
      },
    ],
  },
  {
    name: 'nobody-reaps',
    what: 'machines that nobody knows are left alone',
    story: 'provision',
    shownBy: ['I6', 'L4'],
    patches: [
      {
        file: 'src/control/pools/poolStep.ts',
        find: "if (machine.phase === 'gone') continue;",
        replace: 'continue;',
      },
    ],
  },
  {
    name: 'destroyed-once',
    what: 'the end of a machine is asked for once, whatever comes of it',
    story: 'provision',
    shownBy: ['I6', 'L1', 'L4'],
    patches: [
      {
        file: 'src/control/pools/poolStep.ts',
        find: 'return asked === undefined || nowMs - asked >= DESTROY_AGAIN_MS;',
        replace: 'return asked === undefined;',
      },
    ],
  },
  {
    name: 'spend-not-limited',
    what: 'machines are launched and kept whatever they cost',
    story: 'provision',
    shownBy: ['I17'],
    patches: [
      {
        file: 'src/core/capacity/budget.ts',
        find: "if (tooDear) return { kind: 'full', reason: tooDear };",
        replace: '',
      },
      {
        file: 'src/core/capacity/releases.ts',
        find: 'if (pool.spend) releaseUnpaid(pool, gone, nowMs, next);',
        replace: '',
      },
    ],
  },
  {
    name: 'nothing-adopted',
    what: 'a machine whose launch was not answered is a stranger',
    story: 'provision',
    shownBy: ['I1', 'I6'],
    patches: [
      {
        file: 'src/core/instances/match.ts',
        find: "if (key !== '') byKey.set(key, instance);",
        replace: "if (key !== '' && instance.handle !== '') byKey.set(key, instance);",
      },
    ],
  },
];
