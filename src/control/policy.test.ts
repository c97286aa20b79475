/** The site's policy on what the controller is asked to take. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestController } from '../../test/support/testController.ts';
import { readPolicy } from '../model/policy/read.ts';
import type { Policy } from '../model/policy/schema.ts';
import { jobSpec, type SubmittedSpec } from '../protocol/jobSpec.ts';

let it: TestController;
let policy: Policy | null;
const NO_VIEW = { text: 'rules: []', loadedAtMs: 1, problem: null };
beforeEach(async () => {
  policy = readPolicy(
    'p',
    `
defaults: [{ timeLimit: 1h, labels: { site: berlin } }]
rules:
  - { name: short, require: { longestTimeLimit: 2h } }
  - { name: few, require: { mostRetries: 1 } }
  - { name: bands, unless: { labels: { vip: '*' } }, require: { priorities: [batch] } }
  - { name: pools, require: { pools: { deny: [none] } } }
leaving: { jobs: cancel }
`,
  );
  it = await new TestController({
    policy: { current: () => policy, view: () => NO_VIEW },
  }).start();
});
afterEach(() => it.close());

const LONG = { timeLimitMs: 3 * 3_600_000, retries: 2 };
const request = (spec: Partial<SubmittedSpec>, key: string | null = null, count = 1) => ({
  specs: Array.from({ length: count }, () => jobSpec.parse({ command: ['true'], ...spec })),
  idempotencyKey: key,
  bodyHash: key && 'hash',
});

test('fills in, and refuses with every rule before it looks at pools', async () => {
  const [id = ''] = await it.submit({});
  const { spec } = await it.clock.run(it.it.getJob(it.admin, id));
  expect(spec).toMatchObject({ timeLimitMs: 3_600_000, labels: { site: 'berlin' } });
  expect(spec?.placement.constraints).toMatchObject([{ attribute: 'pool', operator: 'NE' }]);
  const refused = it.submit({ ...LONG, pool: 'none' });
  await expect(refused).rejects.toMatchObject({ code: 'POLICY', status: 403 });
  await expect(refused).rejects.toThrow(/rule "few".*rule "pools".*rule "short"/);
  await expect(it.submit({}, LONG)).rejects.toThrow(/job 2: it has 2 retries/);
  expect(it.controller.state.jobs.size).toBe(1);
});

test('a plan is refused the same way, and reckons with what is filled in', async () => {
  const plan = (spec: Partial<SubmittedSpec>) =>
    it.clock.run(it.it.plan(it.admin, jobSpec.parse({ command: ['true'], ...spec })));
  await expect(plan(LONG)).rejects.toMatchObject({ code: 'POLICY' });
  expect((await plan({})).options).toMatchObject([{ pool: 'default', costMicros: 0 }]);
});

test('what was accepted is answered the same, whatever the policy says now', async () => {
  policy = null;
  const submit = () => it.clock.run(it.it.submit(it.admin, request(LONG, 'k1')));
  const first = await submit();
  policy = readPolicy('p', 'rules: [{ name: no, require: { refuse: closed } }]');
  expect(await submit()).toEqual({ ids: first.ids, replayed: true });
  const other = it.clock.run(it.it.submit(it.admin, request(LONG, 'k2')));
  await expect(other).rejects.toThrow('rule "no": closed');
});

test('a thousand equal jobs cost one look', async () => {
  let looks = 0;
  const real = policy!;
  const counted = {
    ...real,
    rules: real.rules.map((rule) => ({
      ...rule,
      get require() {
        looks++;
        return rule.require;
      },
    })),
  };
  policy = counted;
  const { specs, ...rest } = request({}, null, 1000);
  const named = specs.map((spec, at) => ({ ...spec, name: `n${at}`, command: ['echo', `${at}`] }));
  const { ids } = await it.clock.run(it.it.submit(it.admin, { ...rest, specs: named }));
  expect(ids).toHaveLength(1000);
  expect(looks).toBeLessThan(20);
  const view = await it.clock.run(it.it.getJob(it.admin, ids[999] ?? ''));
  expect(view.spec).toMatchObject({
    name: 'n999',
    command: ['echo', '999'],
    timeLimitMs: 3_600_000,
  });
});

test('a changed priority keeps the rules too', async () => {
  const [plain = '', vip = ''] = await it.submit({}, { labels: { vip: 'yes' } });
  const raise = (id: string) => it.clock.run(it.it.setPriority(it.admin, id, 'production'));
  await expect(raise(plain)).rejects.toThrow(/rule "bands": the priority is production/);
  expect(await raise(vip)).toMatchObject({ priority: 'production' });
});

test('who leaves: his jobs go as the policy says, unless it is said otherwise', async () => {
  const [kept = ''] = await it.submit({});
  await it.clock.run(it.it.removeUser(it.admin, it.admin.user, 'keep'));
  expect((await it.clock.run(it.it.getJob(it.admin, kept))).state).toBe('PENDING');
  await it.clock.run(it.it.removeUser(it.admin, it.admin.user, undefined));
  expect((await it.clock.run(it.it.getJob(it.admin, kept))).state).toBe('CANCELLED');
});

test('only operators see it', async () => {
  expect(await it.it.policy(it.admin)).toEqual(NO_VIEW);
  const user = { ...it.admin, scopes: ['jobs:read' as const, 'jobs:manage' as const] };
  await expect(it.it.policy(user)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
});
