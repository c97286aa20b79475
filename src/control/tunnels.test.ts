/** Tickets: one per dial, to the agent that runs the task, for a short while. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type TestAgent, TestController } from '../../test/support/testController.ts';
import { hashSecret } from './secrets.ts';
import { TICKET_MS } from './tunnels.ts';

const GATEWAY = 'wss://gateway.example/v1/tunnel';
let it: TestController;
let agent: TestAgent;
let job: string;
let uid: string;
beforeEach(async () => {
  it = await new TestController().start();
  agent = await it.joinAgent();
  [job = ''] = await it.submit({ shape: { kind: 'array', indices: [3, 5] } });
  uid = (await agent.sync()).desired[0]?.uid ?? '';
  await it.clock.run(it.it.registerGateway(GATEWAY, 30_000));
});
afterEach(() => it.close());

const open = (id: string, url = GATEWAY) => it.clock.run(it.it.openTunnel(it.admin, id, url));
const running = () => agent.sync([{ uid, state: 'RUNNING' }]);

describe('a tunnel', () => {
  test('is asked for once, at the worker of the task, with a ticket only it sees', async () => {
    await running();
    const { ticketHash, ...asked } = await open(`${job}.3`);
    expect(asked).toEqual({ worker: agent.joined.worker, attempt: uid });
    const { tunnels } = await running();
    expect(tunnels).toMatchObject([{ gatewayUrl: GATEWAY }]);
    expect(tunnels[0]?.ticket).toMatch(/^drt_/);
    expect(hashSecret(tunnels[0]?.ticket ?? '')).toBe(ticketHash);
    expect((await running()).tunnels).toEqual([]);
  });

  test('to a job goes to its first task', async () => {
    await running();
    expect(await open(job)).toMatchObject({ attempt: uid });
  });

  test('wakes the agent’s held call', async () => {
    await running();
    // Both tasks are known to the agent, so that the call has nothing else to say.
    const second = [...it.controller.state.attempts.keys()].find((one) => one !== uid) ?? '';
    const seen = [uid, second].map((one) => ({ uid: one, state: 'RUNNING' as const }));
    const held = agent.send(seen, { wait: true });
    await it.clock.settle();
    await open(job);
    expect((await it.clock.run(held)).tunnels).toHaveLength(1);
  });

  test('is not asked for any more when its ticket is too old', async () => {
    await running();
    await open(job);
    await it.clock.advance(TICKET_MS);
    expect((await running()).tunnels).toEqual([]);
  });
});

describe('no tunnel', () => {
  test('to what does not run yet', async () => {
    await expect(open(`${job}.3`)).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  test.each(['4', 'x', '3.1'])('to a task there is not: .%s', async (index) => {
    await running();
    await expect(open(`${job}.${index}`)).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  test('to a job there is not, or of another tenant', async () => {
    await expect(open('j-none')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const stranger = { ...it.admin, tenant: 'other' };
    const call = it.it.openTunnel(stranger, job, GATEWAY);
    await expect(it.clock.run(call)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('over a gateway that has not registered, or not lately', async () => {
    await running();
    await expect(open(job, 'wss://other')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await it.clock.advance(30_000);
    await running();
    await expect(open(job)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await it.clock.run(it.it.registerGateway(GATEWAY, 30_000));
    expect(await open(job)).toMatchObject({ attempt: uid });
  });
});
