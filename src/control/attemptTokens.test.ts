/** Who gets an attempt's tokens, what is on record of it, and what becomes of a refusal. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestController, type TestAgent } from '../../test/support/testController.ts';
import type { Exchanged } from '../exchange/contract.ts';
import { exchangeSettings } from '../model/exchangeSettings.ts';
import type { AttemptOrder } from '../protocol/agent.ts';
import { jobSpec } from '../protocol/jobSpec.ts';

const identity = { issuer: 'https://login', subject: 'ada' };
const downstream = { ...identity, audiences: ['storage', 'registry'], sealed: null, refused: [] };
const LIFE_MS = 300_000;
const refused: Exchanged = { kind: 'refused', reason: 'invalid_grant' };
const away: Exchanged = { kind: 'unavailable', reason: 'away' };
const settings = exchangeSettings.parse({
  onRefusal: 'stop',
  audiences: { storage: { audience: 'a', required: true }, registry: { audience: 'b' } },
});

let it: TestController;
let agent: TestAgent;
let answers: Record<string, () => Exchanged>;
const granted = (): Exchanged => ({
  ...{ kind: 'granted', token: 'T', refreshToken: null, lifeMs: LIFE_MS },
  expiresAtMs: it.clock.now() + LIFE_MS,
});
beforeEach(async () => {
  answers = { storage: granted, registry: granted };
  const mint = async (_job: unknown, name: string): Promise<Exchanged> => answers[name]!();
  it = await new TestController({ minter: { settings, mint } }).start();
  agent = await it.joinAgent();
});
afterEach(() => it.close());

const specs = [jobSpec.parse({ command: ['true'] })];
const request = { specs, idempotencyKey: null, bodyHash: null };
const ask = (uid: string, by = agent) => it.clock.run(it.it.attemptTokens(by.joined.token, uid));

async function ordered(): Promise<{ id: string; order: AttemptOrder }> {
  const who = { ...it.admin, identity };
  const { ids } = await it.clock.run(it.it.submit(who, { ...request, downstream }));
  await it.clock.advance(1000);
  const [order] = (await agent.sync()).desired as [AttemptOrder];
  return { id: ids[0] ?? '', order };
}

const told = async (id: string) =>
  (await it.clock.run(it.it.listEvents(it.admin, id, { limit: 100 }))).items
    .filter(({ kind }) => kind.startsWith('tokens.'))
    .map(({ kind, data }) => `${kind} ${data['audiences'] ?? data['audience']}`);

test('the order says that there are some; only what is new is told of', async () => {
  const { id, order } = await ordered();
  expect(order.downstream).toBe(true);
  const first = await ask(order.uid);
  expect(first).toMatchObject({ refused: [], renewInMs: (LIFE_MS * 2) / 3 });
  expect(first.tokens.map(({ audience }) => audience)).toEqual(['storage', 'registry']);
  await ask(order.uid);
  expect(await told(id)).toEqual(['tokens.given storage registry']);
  answers['registry'] = () => away;
  expect(await ask(order.uid)).toMatchObject({
    ...{ tokens: [{ audience: 'storage' }], renewInMs: 10_000 },
    refused: [{ audience: 'registry', reason: 'away' }],
  });
  expect((await told(id)).slice(1)).toEqual(['tokens.given storage', 'tokens.refused registry']);
  const audit = await it.clock.run(it.it.listAudit(it.admin, { limit: 1 }));
  expect(audit.items).toMatchObject([{ kind: 'tokens.given', data: { to: 'ada' } }]);
});

test('a plain job has none, and nobody else’s agent gets any', async () => {
  const { order } = await ordered();
  const other = await it.joinAgent();
  await expect(ask(order.uid, other)).rejects.toMatchObject({ code: 'STALE' });
  await expect(ask('nothing')).rejects.toMatchObject({ code: 'STALE' });
  await agent.sync([{ uid: order.uid, state: 'ENDED', cause: 'exited', exitCode: 0 }]);
  await expect(ask(order.uid)).rejects.toMatchObject({ code: 'STALE' });
  await it.submit({});
  await it.clock.advance(1000);
  const [plain] = (await agent.sync()).desired as [AttemptOrder];
  expect(plain.downstream).toBeUndefined();
  expect(await ask(plain.uid)).toMatchObject({ tokens: [], refused: [] });
});

test('before the start a refusal is no absence; what is optional may be either', async () => {
  const { order } = await ordered();
  answers = { storage: granted, registry: () => refused };
  expect((await ask(order.uid)).tokens).toHaveLength(1);
  answers['storage'] = () => refused;
  await expect(ask(order.uid)).rejects.toMatchObject({
    ...{ code: 'PERMISSION_DENIED', message: 'no token for "storage": invalid_grant' },
  });
  answers['storage'] = () => away;
  await expect(ask(order.uid)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
});

test('while it runs an absence is borne; a refusal stops it by policy', async () => {
  const { order } = await ordered();
  const running = { uid: order.uid, state: 'RUNNING' } as const;
  await agent.sync([running]);
  answers = { storage: () => away, registry: granted };
  expect(await ask(order.uid)).toMatchObject({ refused: [{ audience: 'storage' }] });
  expect((await agent.sync([running])).stop).toEqual([]);
  answers['storage'] = () => refused;
  expect(await ask(order.uid)).toMatchObject({ tokens: [{ audience: 'registry' }] });
  expect((await agent.sync([running])).stop).toMatchObject([{ uid: order.uid }]);
});

test('nobody submits in another’s name', async () => {
  for (const who of [it.admin, { ...it.admin, identity: { ...identity, subject: 'eve' } }]) {
    const call = it.it.submit(who, { ...request, downstream });
    await expect(it.clock.run(call)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  }
});

test('a restart forgets nothing', async () => {
  const { order } = await ordered();
  await it.restart();
  expect((await ask(order.uid)).tokens).toHaveLength(2);
});
