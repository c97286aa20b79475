/** Planted bugs in where things run and when they end: capacity, gangs, cancels, retries. */
import type { Plant } from './plant.ts';

export const PLACEMENT_PLANTS: Plant[] = [
  {
    name: 'capacity-freed-at-stop',
    what: 'a claim is free when the stop is asked for, not when the attempt is gone',
    shownBy: ['I7'],
    patches: [
      {
        file: 'src/state/endings.ts',
        find: "claim.state = 'RELEASING';\n    state.touchClaim(claim);",
        replace:
          'state.claims.delete(attempt.uid);' +
          'state.workers.get(claim.worker)?.capacity.give(claim);' +
          'state.deltas.claims.add(attempt.uid);' +
          "if (state.changes.claims.get(claim) === 'insert') state.changes.claims.delete(claim);" +
          "else state.changes.claims.set(claim, 'delete');",
      },
    ],
  },
  {
    name: 'assign-to-lost-worker',
    what: 'a plan is applied although its worker is gone',
    shownBy: ['I7', 'log'],
    patches: [
      {
        file: 'src/state/assign.ts',
        find: 'if (!worker || !takesWork(state, worker.worker)) {',
        replace: 'if (!worker) { continue; } else if (1 > 2) {',
      },
    ],
  },
  {
    name: 'gang-in-parts',
    what: 'members of a gang that fit are placed without the others',
    shownBy: ['I8'],
    patches: [
      {
        file: 'src/core/schedule/planning.ts',
        find: 'return fleet.placeGang(request, size, inputs)?.toSorted(byWorker) ?? null;',
        replace:
          'for (let some = size; size > 1 && some > 0; some--) {' +
          'const spots = fleet.placeGang(request, some); if (spots) return spots; }',
      },
      {
        file: 'src/core/schedule/planning.ts',
        find: 'const tasks = members.map((task, at) => {',
        replace: 'const tasks = members.slice(0, spots.length).map((task, at) => {',
      },
    ],
  },
  {
    name: 'gang-round-not-void',
    what: 'a member that ended well in a failed round counts for the next',
    shownBy: ['I11', 'log', 'L1'],
    patches: [
      {
        file: 'src/state/gangs.ts',
        find: "else if (task.state !== 'PENDING') {",
        replace: "else if (task.state !== 'PENDING' && !task.roundDone) {",
      },
    ],
  },
  {
    name: 'cancel-does-not-hold',
    what: 'what waits when its job is cancelled may still be placed',
    shownBy: ['I13', 'L1'],
    patches: [
      {
        file: 'src/state/assign.ts',
        find: "!== null) return refuse(stale('the job was cancelled'));",
        replace: "=== 0) return refuse(stale('the job was cancelled'));",
      },
      {
        file: 'src/state/cancel.ts',
        find: "const idle = task.state === 'PENDING' || (",
        replace: 'const idle = (',
      },
    ],
  },
  {
    name: 'back-off-by-wall-clock',
    what: 'a retry waits until a time that a clock step has put far ahead',
    shownBy: ['L1', 'L2'],
    patches: [
      {
        file: 'src/core/schedule/sleepers.ts',
        find: 'task.notBeforeMs <= nowMs || task.notBeforeMs > nowMs + LONGEST_DELAY_MS',
        replace: 'task.notBeforeMs <= nowMs',
      },
    ],
  },
  {
    name: 'lost-worker-keeps-attempts',
    what: 'the attempts of a lost worker never end',
    shownBy: ['I7', 'L1'],
    patches: [
      {
        file: 'src/state/workers.ts',
        find: 'loseAll(state, live, reason, nowMs);',
        replace: '',
      },
    ],
  },
  {
    name: 'stale-placement-forgotten',
    what: 'the planner never hears that its placement was refused',
    shownBy: ['L1', 'L2'],
    patches: [
      {
        file: 'src/control/schedule.ts',
        find: 'if (found) state.deltas.tasks.add(found.task);',
        replace: 'void found;',
      },
    ],
  },
];
