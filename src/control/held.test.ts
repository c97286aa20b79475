/** What workers say they hold reaches the planner, and is forgotten with the controller. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestController, type TestAgent } from '../../test/support/testController.ts';
import { syncRequest } from '../protocol/agent.ts';

const HASH = `sha256:${'a'.repeat(64)}`;
const OTHER = `sha256:${'b'.repeat(64)}`;
const held = [{ hash: HASH, bytes: 1000 }];
let it: TestController;
let agents: TestAgent[];
beforeEach(async () => {
  it = await new TestController().start();
  agents = [];
  for (let n = 0; n < 4; n++) agents.push(await it.joinAgent());
});
afterEach(() => it.close());

/** Which agent gets a job with this input; it ends at once. */
async function goesTo(uri: string): Promise<number> {
  const [id = ''] = await it.submit({ inputs: [{ name: 'x', uri }] });
  for (const [at, agent] of agents.entries()) {
    const { desired } = await agent.sync();
    const order = desired.find(({ job }) => job === id);
    if (!order) continue;
    await agent.sync([{ uid: order.uid, state: 'ENDED', cause: 'exited', exitCode: 0 }]);
    return at;
  }
  throw new Error('nobody got it');
}

test('a job goes to whoever holds its input, also when another does later', async () => {
  for (const at of [2, 0, 3, 1]) {
    await agents[at]!.sync([], { held });
    expect(await goesTo(`blob:${HASH}`)).toBe(at);
    expect(await goesTo(`tree:${HASH}`)).toBe(at);
    await agents[at]!.sync([], { held: [] });
  }
});

test('a new controller knows it when it is told anew', async () => {
  const at = (await goesTo(`blob:${OTHER}`)) === 3 ? 2 : 3;
  await agents[at]!.sync([], { held });
  expect(await goesTo(`blob:${HASH}`)).toBe(at);
  await it.restart();
  const { epoch } = await agents[at]!.sync();
  expect(epoch).toBe(it.controller.state.epoch);
  await agents[at]!.sync([], { held });
  expect(await goesTo(`blob:${HASH}`)).toBe(at);
});

test('an agent says so much and no more, and an older one nothing', () => {
  const request = {
    ...{ worker: 'w', bootId: 'b', start: 1, seq: 1, epoch: 1, observed: [], wait: false },
  };
  expect(syncRequest.safeParse(request).success).toBe(true);
  const many = (count: number) => Array.from({ length: count }, () => held[0]);
  expect(syncRequest.safeParse({ ...request, held: many(128) }).success).toBe(true);
  expect(syncRequest.safeParse({ ...request, held: many(129) }).success).toBe(false);
  const wrong = [{ hash: 'sha256:../../etc', bytes: 1 }];
  expect(syncRequest.safeParse({ ...request, held: wrong }).success).toBe(false);
});
