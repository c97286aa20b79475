/** A gang's members under real runtimes: they meet first, then start; or are told why not. */
import { readdirSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { AttemptOrder, GangOrder } from '../../protocol/agent.ts';
import { Bench, ended, eventually, inState, observe, order, shell } from './testing.ts';

const benches = [new Bench(), new Bench()];
afterAll(() => Promise.all(benches.map((bench) => bench.clean())));

async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function gangOf(size: number, make: (more: Partial<AttemptOrder>) => AttemptOrder) {
  const port = await freePort();
  const master = { worker: 'a', address: '127.0.0.1', port };
  const members = Array.from({ length: size }, () => ({ worker: 'a', address: '127.0.0.1' }));
  return members.map((_, rank) => {
    const gang: GangOrder = {
      ...{ rank, size, round: 0, token: 'secret', worker: 'a', master, visibleGpus: [] },
      members: rank === 0 ? members : [],
    };
    const env = { RANK: `${rank}`, WORLD_SIZE: `${size}`, MASTER_PORT: `${port}` };
    return make({ gang, env: { ...env, MASTER_ADDR: '127.0.0.1' } });
  });
}

/** Rank 0 listens without asking for reuse of the address; nobody tries twice more than needed. */
const RENDEZVOUS = `import os, socket, time
rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
port = int(os.environ['MASTER_PORT'])
if rank == 0:
    server = socket.socket()
    server.bind(('', port))
    server.listen(world)
    met = [server.accept()[0] for _ in range(world - 1)]
    print(sorted(one.makefile().readline().strip() for one in met))
else:
    for _ in range(500):
        try:
            socket.create_connection((os.environ['MASTER_ADDR'], port)).sendall(b'%d' % rank)
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
`;

test('members on two machines meet, and their commands meet at the same place', async () => {
  const runtimes = benches.map((bench) => bench.open());
  const members = await gangOf(4, (more) => order(['python3', '-c', RENDEZVOUS], more));
  // Rank 0 comes last and late: the others wait for it.
  for (const member of members.toReversed()) runtimes[member.gang!.rank % 2]!.start(member);
  for (const { uid, gang } of members) {
    const end = await ended(runtimes[gang!.rank % 2]!, uid);
    expect(end).toMatchObject({ cause: 'exited', exitCode: 0 });
  }
  expect(benches[0]!.read(members[0]!.uid, 'stdout')).toBe("['1', '2', '3']\n");
  await Promise.all(runtimes.map((runtime) => runtime.close()));
});

test('a stop while it waits ends it at once, with the cause of the stop', async () => {
  const runtime = benches[0]!.open();
  const [, one] = await gangOf(2, (more) => shell('echo ran', more));
  runtime.start(one!);
  expect(observe(runtime, one!.uid)?.state).toBe('STARTING');
  expect(runtime.hasFiles(one!.uid)).toBe(false);
  runtime.stop({ uid: one!.uid, cause: 'gang-failed', graceMs: 30_000 });
  expect(observe(runtime, one!.uid)).toMatchObject({ state: 'ENDED', cause: 'gang-failed' });
  expect(runtime.hasFiles(one!.uid)).toBe(true);
  await runtime.close();
});

test('the next agent knows that nothing was started', async () => {
  const first = benches[0]!.open();
  const [, one] = await gangOf(2, (more) => shell('echo ran', more));
  first.start(one!);
  await first.close();
  const second = benches[0]!.open();
  expect(observe(second, one!.uid)).toMatchObject({
    ...{ state: 'ENDED', cause: 'never-started', hostFault: true },
  });
  second.start(one!);
  expect(observe(second, one!.uid)?.state).toBe('ENDED');
  await second.close();
});

test('a member whose lease ran out while it waited does not start', async () => {
  const runtime = benches[0]!.open();
  const [zero, one] = await gangOf(2, (more) => shell('echo ran', more));
  runtime.start(one!, 1);
  runtime.start(zero!);
  expect(await ended(runtime, one!.uid)).toMatchObject({
    ...{ cause: 'never-started', hostFault: true },
    message: 'its lease ran out before it could start',
  });
  expect(await ended(runtime, zero!.uid)).toMatchObject({ cause: 'exited' });
  await runtime.close();
});

test('a rank 0 that cannot listen is a fault of its machine', async () => {
  const taken = createServer().listen(0);
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const runtime = benches[0]!.open();
  const [zero] = await gangOf(2, (more) => shell('echo ran', more));
  zero!.gang!.master!.port = port;
  runtime.start(zero!);
  expect(await ended(runtime, zero!.uid)).toMatchObject({
    ...{ cause: 'never-started', hostFault: true },
    message: `rank 0 on worker a cannot listen on port ${port}: something else uses it`,
  });
  taken.close();
  await runtime.close();
});

test('a command that is not there is told without a meeting; a gang of one has none', async () => {
  const runtime = benches[0]!.open();
  const [zero] = await gangOf(2, (more) => order(['/no/such/program'], more));
  runtime.start(zero!);
  expect(observe(runtime, zero!.uid)).toMatchObject({ cause: 'never-started', exitCode: 127 });
  const [alone] = await gangOf(1, (more) => shell('echo ran; sleep 100', more));
  runtime.start(alone!);
  await inState(runtime, alone!.uid, 'RUNNING');
  runtime.stop({ uid: alone!.uid, cause: 'cancelled', graceMs: 0 });
  await ended(runtime, alone!.uid);
  const leases = (): string[] => readdirSync(join(benches[0]!.dataDir, 'leases'));
  await eventually(() => leases().length === 0, 'the leases to go');
  await runtime.close();
});

test('one GPU each: the command sees the GPUs of all members on its machine', async () => {
  const runtime = benches[0]!.open();
  const [zero] = await gangOf(1, (more) => shell('echo $CUDA_VISIBLE_DEVICES', more));
  zero!.devices = [{ index: 5, kind: 'gpu' }];
  zero!.gang!.visibleGpus = [2, 5];
  runtime.start(zero!);
  await ended(runtime, zero!.uid);
  expect(benches[0]!.read(zero!.uid, 'stdout')).toBe('2,5\n');
  await runtime.close();
});
