/** Random things that people do to each other and to the order of jobs. */
import { PRIORITIES } from '../../src/model/job.ts';
import type { JobId } from '../../src/model/ids.ts';
import type { Mutation } from '../../src/state/mutations.ts';
import type { TestState } from './testState.ts';

export function bandOf(job: JobId, pick: number): Mutation {
  const priority = PRIORITIES[pick % PRIORITIES.length]!;
  return { kind: 'set-priority', job, priority, by: 'ann' };
}

export function takePeople(it: TestState, pick: number): void {
  const tenant = 'default';
  const user = ['ann', 'bob', 'u'][pick % 3]!;
  const by = 'op';
  if (pick % 5 === 0) {
    it.apply({ kind: 'set-tenant', name: 'a', suspended: pick % 2 === 0, note: `n${pick}`, by });
  } else if (pick % 5 === 1) {
    it.apply({ kind: 'set-user', tenant, user, roles: ['viewer'].slice(pick % 2), by });
  } else if (pick % 5 === 2) {
    const jobs = pick % 2 === 0 ? 'keep' : 'cancel';
    it.apply({ kind: 'remove-user', tenant: pick % 3 === 0 ? 'a' : tenant, user, jobs, by });
  } else {
    const [token] = it.state.tokens.keys();
    if (token) it.apply({ kind: 'use-tokens', tokens: [{ token, atMs: it.nowMs }] });
  }
}
