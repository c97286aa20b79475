/** What members of a gang are told: torchrun's numbers, and how to meet before they start. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { machine, TestController, type TestAgent } from '../../test/support/testController.ts';
import type { AttemptOrder, JoinRequest } from '../protocol/agent.ts';

let it: TestController;
beforeEach(async () => {
  it = await new TestController().start();
});
afterEach(() => it.close());

const CAN_MEET = ['process', 'preflight'];

/** Room for two members of 3 cores. */
const join = (name: string, more: Partial<JoinRequest> = {}): Promise<TestAgent> =>
  it.joinAgent({ name, address: `${name}.lan`, capabilities: CAN_MEET, ...more });

async function orders(agents: TestAgent[], gpus = 0): Promise<AttemptOrder[]> {
  const device = gpus > 0 ? { device: { count: gpus } } : {};
  const resources = { cpuMillis: 3000, ...device };
  await it.submit({ shape: { kind: 'gang', size: 4 }, resources, retries: 3, maxInterruptions: 7 });
  const replies = [];
  for (const agent of agents) replies.push(await agent.sync());
  return replies.flatMap(({ desired }) => desired).toSorted((a, b) => a.index - b.index);
}

const of = (all: AttemptOrder[], name: string): (string | undefined)[] =>
  all.map(({ env }) => env[name]);

describe('the variables of torchrun', () => {
  test('number processes, and workers by their lowest rank', async () => {
    const all = await orders([await join('a'), await join('b')]);
    const workers = all.map(({ gang }) => gang?.worker);
    expect(new Set(workers).size).toBe(2);
    expect(of(all, 'RANK')).toEqual(['0', '1', '2', '3']);
    expect(of(all, 'ROLE_RANK')).toEqual(['0', '1', '2', '3']);
    const groupOf = (name: string | undefined): string => (name === workers[0] ? '0' : '1');
    expect(of(all, 'GROUP_RANK')).toEqual(workers.map(groupOf));
    expect(of(all, 'NODE_RANK')).toEqual(workers.map(groupOf));
    const local = workers.map((name, rank) => workers.slice(0, rank).filter((w) => w === name));
    expect(of(all, 'LOCAL_RANK')).toEqual(local.map(({ length }) => String(length)));
    for (const { env, job } of all) {
      expect(env).toMatchObject({
        WORLD_SIZE: '4',
        LOCAL_WORLD_SIZE: '2',
        GROUP_WORLD_SIZE: '2',
        ROLE_WORLD_SIZE: '4',
        ROLE_NAME: 'default',
        MASTER_ADDR: `${workers[0]}.lan`,
        MASTER_PORT: String(all[0]!.ports[0]),
        TORCHELASTIC_RUN_ID: job,
        TORCHELASTIC_RESTART_COUNT: '0',
        TORCHELASTIC_MAX_RESTARTS: '10',
        TORCHELASTIC_USE_AGENT_STORE: 'False',
        TORCH_NCCL_ASYNC_ERROR_HANDLING: '1',
      });
    }
  });

  test('stay when a member has ended before another is told, and count rounds', async () => {
    const [a, b] = [await join('a'), await join('b')];
    const all = await orders([a, b]);
    const late = all.find(({ gang }) => gang?.worker !== all[0]!.gang?.worker)!;
    const [early, other] = late.gang?.worker === 'a' ? [b, a] : [a, b];
    const done = { uid: all[0]!.uid, state: 'ENDED', cause: 'exited', exitCode: 0 } as const;
    await early.sync([done]);
    const again = (await other.sync()).desired.find(({ uid }) => uid === late.uid);
    expect(again).toEqual(late);
    const failed = { uid: late.uid, state: 'ENDED', cause: 'exited', exitCode: 1 } as const;
    await other.sync([failed]);
    await it.clock.advance(5000);
    const next = [await early.sync(), await other.sync()].flatMap(({ stop }) => stop);
    for (const { uid } of next) {
      const ended = { uid, state: 'ENDED', cause: 'gang-failed' } as const;
      await (all.find((one) => one.uid === uid)?.gang?.worker === 'a' ? a : b).sync([ended]);
    }
    await it.clock.advance(5000);
    const round1 = [await a.sync(), await b.sync()].flatMap(({ desired }) => desired);
    expect(round1).toHaveLength(4);
    expect(new Set(of(round1, 'TORCHELASTIC_RESTART_COUNT'))).toEqual(new Set(['1']));
    expect(round1[0]!.gang?.token).not.toBe(all[0]!.gang?.token);
  });
});

describe('how to meet', () => {
  test('every member knows rank 0 and a secret; rank 0 knows them all', async () => {
    const all = await orders([await join('a'), await join('b')]);
    const gangs = all.map(({ gang }) => gang!);
    const master = { worker: gangs[0]!.worker, address: `${gangs[0]!.worker}.lan` };
    for (const [rank, gang] of gangs.entries()) {
      expect(gang).toMatchObject({ rank, size: 4, round: 0, token: gangs[0]!.token });
      expect(gang.master).toEqual({ ...master, port: all[0]!.ports[0] });
    }
    expect(gangs[0]!.token).toMatch(/^[0-9a-f]{64}$/);
    const named = gangs.map(({ worker }) => ({ worker, address: `${worker}.lan` }));
    expect(gangs[0]!.members).toEqual(named);
    expect(gangs[1]!.members).toEqual([]);
  });

  test('not with an agent that does not know how: its members just start', async () => {
    const all = await orders([await join('a'), await join('b', { capabilities: ['process'] })]);
    expect(all.map(({ gang }) => gang)).toEqual([undefined, undefined, undefined, undefined]);
    expect(of(all, 'RANK')).toEqual(['0', '1', '2', '3']);
  });

  test('after a restart that no longer knows where rank 0 was, it is said so', async () => {
    const [a, b] = [await join('a'), await join('b')];
    const all = await orders([a, b]);
    const late = all.find(({ gang }) => gang?.worker !== all[0]!.gang?.worker)!;
    const [early, other] = late.gang?.worker === 'a' ? [b, a] : [a, b];
    await early.sync([{ uid: all[0]!.uid, state: 'ENDED', cause: 'exited', exitCode: 0 }]);
    await it.restart();
    const again = (await other.sync()).desired.find(({ uid }) => uid === late.uid);
    expect(again?.gang).toMatchObject({ rank: late.index, master: null });
  });
});

describe('GPUs', () => {
  const gpus = (count: number): Partial<JoinRequest> => ({
    resources: {
      ...machine('x').resources,
      devices: Array.from({ length: count }, (_, index) => ({
        ...{ index, kind: 'gpu' as const, model: 'A100', memoryBytes: 2 ** 36 },
      })),
    },
  });

  test('one each: LOCAL_RANK is the number of the own one among those that are seen', async () => {
    const all = await orders([await join('a', gpus(4)), await join('b', gpus(4))], 1);
    for (const { gang, devices, env } of all) {
      expect(gang?.visibleGpus).toHaveLength(2);
      expect(gang?.visibleGpus[Number(env['LOCAL_RANK'])]).toBe(devices[0]?.index);
    }
  });

  test('several each: a member sees its own only', async () => {
    const all = await orders([await join('a', gpus(4)), await join('b', gpus(4))], 2);
    expect(all.map(({ gang }) => gang?.visibleGpus)).toEqual([[], [], [], []]);
  });
});
