/** What every Coordinator must say about waiting. */
import { expect, test } from 'vitest';
import type { Subject } from './running.contract.ts';

export function scheduling(subject: () => Subject): void {
  test('a job says why it waits, and who is ahead', async () => {
    const { it, admin, submit } = subject();
    const { ids } = await submit({ name: 'first' }, { name: 'second' });
    const why = await it.why(admin, ids[1] ?? '');
    expect(why).toMatchObject({ job: ids[1], state: 'PENDING', position: 2, ahead: 1 });
    expect(why.aheadSample).toMatchObject([{ job: ids[0], name: 'first' }]);
    expect(why).toMatchObject({ code: 'NO_WORKER', tasks: { waiting: 1, running: 0 } });
    expect(why.sentence).toBe('no worker has joined yet');
    await it.cancelJob(admin, ids[0] ?? '');
    expect(await it.why(admin, ids[1] ?? '')).toMatchObject({ position: 1, aheadSample: [] });
    const ended = await it.why(admin, ids[0] ?? '');
    expect(ended).toMatchObject({ code: 'ENDED', state: 'CANCELLED', position: null });
  });
}
