/** Planted bugs in quotas, charges and what is set aside. */
import type { Plant } from './plant.ts';

export const MONEY_PLANTS: Plant[] = [
  {
    name: 'quota-check-then-act',
    what: 'a quota is looked at when it is planned, not when it is taken',
    shownBy: ['I7'],
    patches: [
      {
        file: 'src/state/assign.ts',
        find: 'overLimit(live, members.length) ?? overQuota(state, live, members, nowMs);',
        replace: 'overLimit(live, members.length); void overQuota;',
      },
    ],
  },
  {
    name: 'tenant-quota-forgotten',
    what: "only the user's own quota counts, not that of the tenant",
    shownBy: ['I7'],
    patches: [
      {
        file: 'src/state/assign.ts',
        find: 'overBudget(accounts[0], more, nowMs) ?? overBudget(accounts[1], more, nowMs);',
        replace: 'overBudget(accounts[0], more, nowMs);',
      },
    ],
  },
  {
    name: 'gang-quota-by-member',
    what: 'each member of a gang is held against the quota, not all of them together',
    shownBy: ['I7'],
    patches: [
      {
        file: 'src/state/assign.ts',
        find: 'hold(more, newHold(state, live, claim), 1);',
        replace: 'Object.assign(more, newHold(state, live, claim));',
      },
    ],
  },
  {
    name: 'charge-not-keyed',
    what: 'a charge that is tried again is charged again',
    shownBy: ['I5'],
    patches: [
      {
        file: 'src/state/charges.ts',
        find: 'const micros = costOf(attempt.priceMicros, ms) - attempt.chargedMicros;',
        replace: 'const micros = costOf(attempt.priceMicros, ms);',
      },
    ],
  },
  {
    name: 'host-fault-charged',
    what: 'time on a machine that failed is paid for',
    shownBy: ['I5'],
    patches: [
      {
        file: 'src/state/endings.ts',
        find: "settle(state, attempt, ending.hostFault || ending.cause === 'lost', nowMs);",
        replace: 'settle(state, attempt, false, nowMs);',
      },
    ],
  },
  {
    name: 'one-sided-charge',
    what: 'who pays is written down, not who earns',
    shownBy: ['I5'],
    patches: [
      {
        file: 'src/state/charges.ts',
        find: 'state.changes.ledger.push(paid, negative(paid, `pool/${pool}`));',
        replace: 'state.changes.ledger.push(paid); void negative; void pool;',
      },
    ],
  },
  {
    name: 'month-forgotten-at-midnight',
    what: 'the sums of the month begin anew with every day',
    shownBy: ['I5'],
    patches: [
      {
        file: 'src/state/accounts.ts',
        find: 'if (account.month !== month) {',
        replace: 'if (account.month !== month || account.dayMicros + account.dayDeviceMs === 0) {',
      },
    ],
  },
  {
    name: 'hold-not-given-back',
    what: 'what a nomination set aside stays aside when it is withdrawn',
    shownBy: ['I5', 'L1', 'L2'],
    patches: [
      {
        file: 'src/state/holdings.ts',
        find:
          'state.nominations.delete(id);\n' +
          '  setAside(state, task.job, claim, priceMicros, -1);\n  release(state, claim);',
        replace:
          'state.nominations.delete(id); void priceMicros; void task; release(state, claim);',
      },
    ],
  },
  {
    name: 'budgets-not-rebuilt',
    what: 'budgets are forgotten by a restart',
    // A row that is there is written again: the batch fails, whatever the state believes.
    shownBy: ['I7', 'I2'],
    patches: [
      {
        file: 'src/state/accounts.ts',
        find: 'for (const budget of budgets) this.of(budget.tenant, budget.user).budget = budget;',
        replace: 'void budgets;',
      },
    ],
  },
];
