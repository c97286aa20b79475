/** Planted bugs between controller and agents: leases, fences, the order of syncs. */
import type { Plant } from './plant.ts';

export const AGENTS_PLANTS: Plant[] = [
  {
    name: 'reports-not-fenced',
    what: "an old attempt's report counts for the task's newest attempt",
    shownBy: ['I1', 'I11', 'I7'],
    patches: [
      {
        file: 'src/state/observe.ts',
        find: 'const attempt = state.attempts.get(seen.uid);',
        replace:
          'const attempt = state.attempts.get(seen.uid) ?? ' +
          "[...state.attempts.values()].find((one) => seen.uid.startsWith(one.task + '.'));",
      },
      {
        file: 'src/state/observe.ts',
        find: 'if (attempt?.worker === mutation.worker)',
        replace: 'if (attempt)',
      },
    ],
  },
  {
    name: 'agent-lease-by-wall-clock',
    what: 'the agent counts its leases on a clock that may step',
    shownBy: ['I1', 'I7', 'L1'],
    patches: [
      {
        file: 'src/agent/agent.ts',
        find: 'const sentBootMs = clock.bootMs();',
        replace: 'const sentBootMs = clock.now() - 1_800_000_000_000;',
      },
    ],
  },
  {
    name: 'controller-lease-by-wall-clock',
    what: 'the controller counts leases on a clock that may step',
    shownBy: ['I1', 'I7'],
    patches: [
      {
        file: 'src/control/leases.ts',
        find: 'const nowBootMs = clock.bootMs();',
        replace: 'const nowBootMs = clock.now();',
      },
      {
        file: 'src/control/controller.ts',
        find: '=> core.sessions.lastContactBootMs(worker),',
        replace:
          '=> core.sessions.lastContactAtMs(worker) ?? core.sessions.lastContactBootMs(worker)' +
          ' + core.clock.now() - core.clock.bootMs(),',
      },
    ],
  },
  {
    name: 'lease-from-the-answer',
    what: 'the agent counts its lease from when the answer came, not from when it asked',
    shownBy: ['I1', 'I7'],
    patches: [
      {
        file: 'src/agent/agent.ts',
        find: 'contactBootMs = sentBootMs;',
        replace: 'contactBootMs = clock.bootMs();',
      },
      {
        file: 'src/agent/agent.ts',
        find: 'await follow(reply, sentBootMs);',
        replace: 'await follow(reply, clock.bootMs());',
      },
    ],
  },
  {
    name: 'leases-not-begun-anew',
    what: 'a new controller holds the silence of its own absence against the workers',
    shownBy: ['I1', 'I7'],
    patches: [
      {
        file: 'src/control/sessions.ts',
        find: 'this.#bornBootMs = clock.bootMs();',
        replace: 'this.#bornBootMs = 0;',
      },
    ],
  },
  {
    name: 'old-answers-obeyed',
    what: 'an agent follows an answer that a newer one has overtaken',
    shownBy: ['I1', 'I7'],
    patches: [{ file: 'src/agent/agent.ts', find: 'if (older) return;', replace: 'void older;' }],
  },
  {
    name: 'stale-orders-started',
    what: 'an agent starts orders older than their lease',
    shownBy: ['I1', 'I7'],
    patches: [
      {
        file: 'src/agent/agent.ts',
        find: 'const late = nowBootMs >= killAtBootMs - order.graceMs;',
        replace: 'const late = false;',
      },
    ],
  },
  {
    name: 'late-sync-trusted',
    what: 'what a sync from before the restart does not list is called lost',
    shownBy: ['I1', 'I7'],
    patches: [
      {
        file: 'src/control/agents.ts',
        find: 'const complete = request.epoch === state.epoch;',
        replace: 'const complete = true;',
      },
    ],
  },
  {
    name: 'syncs-not-ordered',
    what: 'a sync that was overtaken on its way counts like a new one',
    shownBy: ['I1', 'I7'],
    patches: [
      {
        file: 'src/control/sessions.ts',
        find: 'if (start < session.start || (start === session.start && seq <= session.seq))',
        replace: 'if (start < -1)',
      },
    ],
  },
  {
    name: 'reboot-told-by-join',
    what: 'a join with another boot id ends what runs, also when it comes late',
    shownBy: ['I1', 'I7'],
    patches: [
      {
        file: 'src/state/workers.ts',
        find: 'Object.assign(worker, mutation.worker, { problems: [] });',
        replace:
          'const rebooted = worker.bootId !== mutation.worker.bootId;' +
          "if (rebooted) loseAll(state, live, 'restarted', nowMs);" +
          'Object.assign(worker, mutation.worker, { problems: [] });',
      },
    ],
  },
  {
    name: 'started-without-deadline',
    what: 'an attempt whose agent dies right after its start has a lease from then on',
    shownBy: ['I1', 'I7'],
    patches: [
      {
        file: 'src/agent/agent.ts',
        find: 'if (!late) runtime.start(order, killAtBootMs);',
        replace: 'if (!late) runtime.start(order);',
      },
    ],
  },
];
