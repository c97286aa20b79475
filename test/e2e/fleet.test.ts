/** A second machine: one command to join, GPUs, join tokens and their limits, draining. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WorkerView } from '../../src/protocol/fleet.ts';
import { DROVER, startJourney, type, until, type Journey, type Typed } from '../support/journey.ts';

let journey: Journey;
const agents: Typed[] = [];
beforeAll(async () => {
  journey = await startJourney({ args: ['--resources', 'cpus=2,mem=1Gi', '--name', 'one'] });
});
afterAll(async () => {
  for (const { child } of agents) child.kill('SIGTERM');
  await Promise.all(agents.map(({ ended }) => ended));
  await journey.close();
});

function agent(name: string, token: string, ...more: string[]): Typed {
  const data = path.join(journey.home, `agent-${name}`);
  const words = ['agent', '--join', journey.url, token, '--name', name, '--data', data];
  // A machine of its own knows the server by the URL alone.
  const started = type(DROVER, [...words, ...more], {
    env: { HOME: path.join(journey.home, name) },
  });
  agents.push(started);
  return started;
}

const worker = (name: string): Promise<WorkerView> =>
  until(`worker ${name} is online`, async () =>
    (await journey.client.listWorkers({})).items.find(
      (one) => one.name === name && one.state === 'ONLINE',
    ),
  );

describe('a second machine', () => {
  let two: WorkerView;
  beforeAll(async () => {
    const { stdout, stderr, code } = await journey.drover('tokens', 'create', '--kind', 'join');
    expect(code).toBe(0);
    expect(stderr).toContain(`drover agent --join ${journey.url} TOKEN`);
    agent('two', stdout.trim(), '--resources', 'cpus=4,mem=8Gi,gpus=2:A100');
    two = await worker('two');
  });

  test('is listed with what it said it has', async () => {
    const { stdout } = await journey.drover('workers');
    expect(stdout).toMatch(/two .*ONLINE +4\/4 +8G\/8G +2\/2 .*2x A100/);
    expect(two.devices.map(({ model }) => model)).toEqual(['A100', 'A100']);
  });

  test('gets the work that asks for GPUs, each its own; a third waits with a reason', async () => {
    const command = ['sh', '-c', 'echo "gpu $CUDA_VISIBLE_DEVICES"; sleep 300'];
    const resources = { cpuMillis: 100, device: { models: ['A100'] } };
    const [first, second] = [
      await journey.submit({ command, resources }),
      await journey.submit({ command, resources }),
    ];
    const placed = await Promise.all([journey.running(first), journey.running(second)]);
    expect(placed.map((attempt) => attempt.worker)).toEqual([two.id, two.id]);
    const seen = await until('both have said which', async () => {
      const logs = await Promise.all([first, second].map((id) => journey.drover('logs', id)));
      return logs.every(({ stdout }) => stdout !== '') && logs.map(({ stdout }) => stdout);
    });
    expect(seen.toSorted()).toEqual(['gpu 0\n', 'gpu 1\n']);
    const third = await journey.submit({ command, resources });
    const entry = await until('it has a reason', async () =>
      (await journey.client.queue({})).items.find(({ job, reason }) => job === third && reason),
    );
    expect(entry.reason).toMatch(/2 with too few free devices/);
    // A freed one goes to the third.
    await journey.client.cancelJob(first);
    expect((await journey.running(third)).worker).toBe(two.id);
    for (const id of [second, third]) await journey.client.cancelJob(id);
  });

  test('a task without GPUs sees none, also on the machine that has them', async () => {
    const big = { cpuMillis: 3000 };
    const id = await journey.submit({
      command: ['sh', '-c', 'echo "[$CUDA_VISIBLE_DEVICES]"'],
      resources: big,
    });
    await journey.ended(id);
    expect((await journey.attempts(id))[0]!.worker).toBe(two.id);
    expect((await journey.drover('logs', id)).stdout).toBe('[]\n');
  });

  test('drain: what runs finishes, nothing new; undrain', async () => {
    const big = { cpuMillis: 3000 };
    const script = ['sh', '-c', 'sleep 4; echo finished'];
    const runs = await journey.submit({ command: script, resources: big });
    await journey.running(runs);
    const drained = await journey.drover('workers', 'drain', two.id);
    expect([drained.code, drained.stdout]).toEqual([0, `${two.id} drains\n`]);
    const waits = await journey.submit({ command: ['true'], resources: big });
    expect(await journey.ended(runs)).toMatchObject({ state: 'SUCCEEDED' });
    const entry = await until('it has a reason', async () =>
      (await journey.client.queue({})).items.find(
        ({ job, reason }) => job === waits && reason.includes('draining'),
      ),
    );
    expect(entry.pendingTasks).toBe(1);
    expect((await journey.drover('workers')).stdout).toContain('ONLINE draining');
    const { stdout } = await journey.drover('workers', 'undrain', two.id, '--json');
    expect(JSON.parse(stdout)).toMatchObject({ id: two.id, draining: false });
    expect(await journey.ended(waits)).toMatchObject({ state: 'SUCCEEDED' });
  });

  test('restarted without a token it is the same worker', async () => {
    const first = agents[0]!;
    first.child.kill('SIGTERM');
    expect((await first.ended).code).toBe(0);
    const data = path.join(journey.home, 'agent-two');
    const env = { HOME: path.join(journey.home, 'two') };
    const args = ['agent', '--data', data, '--name', 'two'];
    const resources = ['--resources', 'cpus=4,mem=8Gi,gpus=2:A100'];
    agents.push(type(DROVER, [...args, ...resources], { env }));
    const id = await journey.submit({ command: ['true'], resources: { cpuMillis: 3000 } });
    await journey.ended(id);
    expect((await journey.attempts(id))[0]!.worker).toBe(two.id);
  });
});

describe('join tokens', () => {
  test.for([
    ['wrong', 'drj_0000000000000000000000000000000000000000000000000000000000000000'],
    ['no token at all', 'nonsense'],
  ])('%s: a clear error, no second try', async ([name, token]) => {
    const before = await joinCalls();
    const { code, stderr } = await agent(name!.replaceAll(' ', '-'), token!).ended;
    expect(code).toBe(1);
    expect(stderr).toContain(
      'error UNAUTHENTICATED: the join token is unknown, expired or revoked',
    );
    expect(stderr).toContain('try: make a new one with: drover tokens create --kind join');
    expect(stderr).not.toContain(token);
    expect((await joinCalls()) - before).toBe(1);
  });

  test('expired, revoked, or a user token', async () => {
    const expiring = await journey.client.createToken({ kind: 'join', expiresInMs: 1000 });
    const revoked = await journey.client.createToken({ kind: 'join' });
    await journey.drover('tokens', 'revoke', revoked.id);
    await until('the first is over', () => Date.now() > expiring.expiresAtMs!);
    const secrets = [expiring.secret!, revoked.secret!, journey.token];
    const ends = await Promise.all(
      secrets.map((secret, at) => agent(`refused-${at}`, secret).ended),
    );
    for (const { code, stderr } of ends) {
      expect([code, stderr]).toEqual([1, expect.stringContaining('error UNAUTHENTICATED')]);
    }
  });

  test('a limit of workers is kept, said, and made up for when one is gone', async () => {
    const args = ['--kind', 'join', '--max-workers', '1', '--json'];
    const { stdout } = await journey.drover('tokens', 'create', ...args);
    const { secret } = JSON.parse(stdout) as { secret: string };
    const small = ['--resources', 'cpus=1,mem=1Gi'];
    agent('limited-1', secret, ...small);
    await worker('limited-1');
    const second = agent('limited-2', secret, ...small);
    await until('it says why', () =>
      second.stderr().includes('1 workers live by this join token already'),
    );
    const names = (await journey.client.listWorkers({})).items.map(({ name }) => name);
    expect(names).not.toContain('limited-2');
    const before = await joinCalls();
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect((await joinCalls()) - before).toBeLessThan(8);
    second.child.kill('SIGTERM');
    expect((await second.ended).code).toBe(0);
  });
});

async function joinCalls(): Promise<number> {
  const { text } = await journey.api('GET /metrics');
  const lines = text.split('\n').filter((line) => /requests_total\{.*\/Join"/.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

describe('what is wrong with the command line of an agent', () => {
  test.for([
    ['no URL', [], 2, 'this machine has not joined a cluster yet'],
    ['a bad URL', ['--join', 'not a url'], 2, '"not a url" is not the URL of a cluster'],
    ['another protocol', ['--join', 'ftp://x'], 2, 'is not the URL of a cluster'],
    ['bad resources', ['--join', 'http://127.0.0.1:1', 'x', '--resources', 'cpus=many'], 2, 'cpus'],
    ['unknown resource', ['--join', 'http://127.0.0.1:1', 'x', '--resources', 'gpu=1'], 2, 'gpus'],
    ['unknown flag', ['--jion', 'http://127.0.0.1:1'], 2, '--jion'],
  ] as const)('%s', async ([, args, expected, words]) => {
    const data = path.join(journey.home, 'nothing');
    const env = { HOME: data, DROVER_DATA: data };
    const { code, stderr } = await type(DROVER, ['agent', ...args], { env }).ended;
    expect([code, stderr]).toEqual([expected, expect.stringContaining(words)]);
    expect(stderr).toMatch(/^error [A-Z_]+: /);
    expect(stderr).toMatch(/^try: /m);
    expect(stderr).not.toMatch(/\n {4}at /);
  });
});
