/** What a submission may wait for, and what is refused before anything is written. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TestController } from '../../test/support/testController.ts';
import type { JobId } from '../model/ids.ts';

let it: TestController;
beforeEach(async () => {
  it = await new TestController().start();
});
afterEach(() => it.close());

const after = (job: string, when: 'ok' | 'failed' | 'any' = 'ok') => ({ job: job as JobId, when });
const specOf = (id: string) => it.controller.state.jobs.get(id as JobId)?.job.spec;

async function ended(exitCode: number): Promise<string> {
  const agent = await it.joinAgent();
  const [id] = await it.submit({});
  const [order] = (await agent.sync()).desired;
  await agent.sync([{ uid: order!.uid, state: 'ENDED', cause: 'exited', exitCode }]);
  return id!;
}

describe('a submission may wait', () => {
  test('for a live job by its id', async () => {
    const [first] = await it.submit({});
    const [second] = await it.submit({ after: [after(first!)] });
    expect(specOf(second!)?.after).toEqual([{ job: first, when: 'ok' }]);
    const view = await it.clock.run(it.it.getJob(it.admin, second!));
    expect(view).toMatchObject({ state: 'PENDING', reason: `waits for ${first} to end` });
  });

  test('for jobs of its own by name, in any order', async () => {
    const [last, first] = await it.submit(
      { name: 'last', after: [after('first')] },
      { name: 'first' },
    );
    expect(specOf(last!)?.after).toEqual([{ job: first, when: 'ok' }]);
  });

  test('for one that has ended as wanted: it need not wait', async () => {
    const [second] = await it.submit({ after: [after(await ended(0))] });
    expect(specOf(second!)?.after).toEqual([]);
  });
});

describe('nothing is written', () => {
  const refused = async (...specs: Parameters<TestController['submit']>): Promise<string> => {
    const before = it.controller.state.jobs.size;
    const error = await it.submit(...specs).then(
      () => new Error('it was taken'),
      (reason: unknown) => reason as Error,
    );
    expect(it.controller.state.jobs.size).toBe(before);
    return error.message;
  };

  test('when jobs wait for each other', async () => {
    expect(
      await refused(
        { name: 'a', after: [after('b')] },
        { name: 'b', after: [after('c')] },
        { name: 'c', after: [after('a')] },
      ),
    ).toBe('these jobs wait for each other: "a" after "b" after "c" after "a"');
    expect(await refused({ name: 'self', after: [after('self')] })).toContain('each other');
  });

  test('when the other job is not there, or is another tenant’s', async () => {
    expect(await refused({ after: [after('j-none')] })).toBe('there is no job j-none to wait for');
  });

  test('when it can never hold', async () => {
    const id = await ended(0);
    expect(await refused({ after: [after(id, 'failed')] })).toBe(
      `job ${id} has ended SUCCEEDED, so "after: failed" can never hold`,
    );
  });

  test('when a name stands for two', async () => {
    expect(await refused({ name: 'x' }, { name: 'x' }, { after: [after('x')] })).toBe(
      'two jobs of this submission are named "x"',
    );
  });
});
