/**
 * What every provider must do, whatever it starts machines with. The test of a provider calls
 * `providerContract(name, start)`, where `start` makes a `ProviderWorld`: the provider's other side
 * (a real Slurm, a real sshd, an emulator, the fake's account) with room for two machines, and a
 * few things only it can do. All of it runs in real time, so a world makes its machines come and go
 * as fast as it can. No agent needs to join: `sleep` will do for one.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { REFUSALS } from '../../src/providers/contract.ts';
import type { LaunchBatch, Machine, Provider, Refusal } from '../../src/providers/contract.ts';
import { alive, batchOf, clear, labels, POLL_MS } from './providerSteps.ts';
import { sentence, until, wellFormed } from './providerSteps.ts';

export interface ProviderWorld {
  /** As a controller opens it; called again for the same cluster, it is a controller's restart. */
  open(clusterId: string): Promise<Provider> | Provider;
  /** Until one that was asked for is listed, and one that was destroyed is gone. */
  patienceMs: number;
  /** What a batch must say to be taken here, where the plain one would not be. */
  batch?: Partial<Omit<LaunchBatch, 'id' | 'intents' | 'target'>>;
  /** Nothing can be asked of the other side any more; what it returns makes it well again. */
  breakDown(): Promise<() => Promise<void>>;
  /**
   * For each kind of refusal that can be provoked: a provider, open for `clusterId`, that refuses
   * the batch then launched with it. At least one.
   */
  refusing: Partial<Record<Refusal, (clusterId: string) => Promise<Provider> | Provider>>;
  close(): Promise<void>;
}

const OURS = 'cluster1';
const OTHERS = 'cluster2';
/** So long a thing that is gone must stay so. */
const STAYS_GONE_MS = 400;

export function providerContract(name: string, start: () => Promise<ProviderWorld>): void {
  describe(`provider: ${name}`, () => {
    let world: ProviderWorld;
    let provider: Provider;
    let other: Provider;
    beforeAll(async () => {
      world = await start();
      provider = await world.open(OURS);
      other = await world.open(OTHERS);
    });
    afterEach(async () => {
      await clear(provider, world.patienceMs);
      await clear(other, world.patienceMs);
    });
    afterAll(async () => {
      await provider?.close();
      await other?.close();
      await world?.close();
    });

    const launch = async (count = 1, on = provider): Promise<LaunchBatch> => {
      const batch = batchOf(count, count, world.batch);
      const result = await on.launch(batch);
      expect(result).toMatchObject({ kind: 'launched' });
      return batch;
    };
    const listed = (batch: LaunchBatch, on = provider): Promise<Machine[]> =>
      until(world.patienceMs, `${batch.id} is listed`, async () => {
        const machines = await alive(on);
        const mine = machines.filter(({ label }) => label === '' || labels(batch).has(label));
        return mine.length === batch.intents.length && mine;
      });
    const gone = (on = provider): Promise<unknown> =>
      until(world.patienceMs, 'all are gone', async () => (await alive(on)).length === 0);

    launches(() => ({ world, provider, launch, listed }));
    ends(() => ({ world, provider, launch, listed, gone }));
    unknowns(() => ({ world, provider, launch, listed }));

    test('machines of other clusters are neither listed nor destroyed', async () => {
      const ours = await launch();
      const theirs = await launch(1, other);
      await listed(ours);
      const [machine] = await listed(theirs, other);
      expect(await alive(provider)).toHaveLength(1);
      expect(await alive(other)).toHaveLength(1);
      const { label, handle } = machine!;
      const refs = [{ label: theirs.intents[0]!.label, handle: '' }];
      if (label !== '') await provider.destroy({ machines: refs, target: 1 });
      await provider.destroy({ machines: [{ label: '', handle }], target: 1 });
      await delay(STAYS_GONE_MS);
      expect(await alive(other)).toMatchObject([{ handle }]);
      expect(await alive(provider)).toHaveLength(1);
    });

    test('a controller that starts again finds and ends what was there', async () => {
      const batch = await launch();
      const [before] = await listed(batch);
      const again = await world.open(OURS);
      const [after] = await listed(batch, again);
      expect(after).toMatchObject({ handle: before!.handle, label: before!.label });
      await again.close();
      await again.close();
      expect(await alive(provider)).toMatchObject([{ handle: before!.handle }]);
      const last = await world.open(OURS);
      await last.destroy({ machines: [after!], target: 0 });
      await gone(last);
      await last.close();
    });
  });
}

interface Tools {
  world: ProviderWorld;
  provider: Provider;
  launch: (count?: number) => Promise<LaunchBatch>;
  listed: (batch: LaunchBatch) => Promise<Machine[]>;
}

function launches(tools: () => Tools): void {
  test('one that was launched is listed under its label, and well described', async () => {
    const { provider, launch, listed } = tools();
    const batch = await launch();
    const [machine] = await listed(batch);
    if (provider.capabilities.labels) expect(machine!.label).toBe(batch.intents[0]!.label);
    else expect(machine!.label).toBe('');
    expect(machine!.handle).not.toBe('');
    wellFormed(machine!);
    const listing = await provider.list();
    expect(JSON.stringify(listing)).not.toContain(batch.intents[0]!.joinToken);
  });

  test('a launch tells the handle of its machine, and no secret', async () => {
    const { world, provider, listed } = tools();
    const batch = batchOf(1, 1, world.batch);
    const result = await provider.launch(batch);
    expect(JSON.stringify(result)).not.toContain(batch.intents[0]!.joinToken);
    if (result.kind !== 'launched') throw new Error(JSON.stringify(result));
    expect(result.handles).toHaveLength(1);
    const [machine] = await listed(batch);
    if (result.handles[0] !== '') expect(result.handles[0]).toBe(machine!.handle);
  });

  test('a batch launched again makes no second machine', async () => {
    const { provider, launch, listed } = tools();
    const batch = await launch();
    const [machine] = await listed(batch);
    const again = await provider.launch(batch);
    expect(['launched', 'unknown']).toContain(again.kind);
    await delay(STAYS_GONE_MS);
    expect(await alive(provider)).toMatchObject([{ handle: machine!.handle }]);
  });

  test('a batch brings all of its machines, and one can end without the others', async () => {
    const { world, provider, launch, listed } = tools();
    if (!provider.capabilities.batches) {
      const first = await launch();
      await listed(first);
      const second = batchOf(1, 2, world.batch);
      expect(await provider.launch(second)).toMatchObject({ kind: 'launched' });
      await until(world.patienceMs, 'both are listed', async () => {
        return (await alive(provider)).length === 2;
      });
    } else await listed(await launch(2));
    const [one, kept] = await alive(provider);
    expect(one!.handle).not.toBe(kept!.handle);
    if (provider.capabilities.labels) expect(one!.label).not.toBe(kept!.label);
    expect(await provider.destroy({ machines: [one!], target: 1 })).toEqual({ kind: 'asked' });
    await until(world.patienceMs, 'one is left', async () => (await alive(provider)).length === 1);
    expect(await alive(provider)).toMatchObject([{ handle: kept!.handle }]);
  });

  test('a refusal says why in a sentence, of its kind, and nothing is there after it', async () => {
    const { world } = tools();
    const kinds = REFUSALS.filter((kind) => world.refusing[kind]);
    expect(kinds).not.toEqual([]);
    for (const kind of kinds) {
      const refusing = await world.refusing[kind]!(OURS);
      const batch = batchOf(1, 1, world.batch);
      const result = await refusing.launch(batch);
      expect(result).toMatchObject({ kind: 'refused', refusal: kind });
      if (result.kind !== 'refused') continue;
      sentence(result.reason, batch);
      expect(result.retryAfterMs).toBeGreaterThanOrEqual(0);
      await refusing.close();
    }
    expect(await alive(tools().provider)).toEqual([]);
  });
}

function ends(tools: () => Tools & { gone: () => Promise<unknown> }): void {
  test('destroy is asked for as often as one likes, also of what does not exist', async () => {
    const { provider, launch, listed, gone } = tools();
    const batch = await launch();
    const machines = await listed(batch);
    for (let i = 0; i < 3; i++) {
      expect(await provider.destroy({ machines, target: 0 })).toEqual({ kind: 'asked' });
    }
    await gone();
    expect(await provider.destroy({ machines, target: 0 })).toEqual({ kind: 'asked' });
    const never = { label: 'i0never0was', handle: '' };
    expect(await provider.destroy({ machines: [never], target: 0 })).toEqual({ kind: 'asked' });
    expect(await provider.destroy({ machines: [], target: 0 })).toEqual({ kind: 'asked' });
    const untilMs = performance.now() + STAYS_GONE_MS;
    while (performance.now() < untilMs) {
      expect(await alive(provider), 'what was gone has come back').toEqual([]);
      await delay(POLL_MS);
    }
  });

  test('one whose handle was never learned is destroyed by its label', async () => {
    const { world, provider, launch, listed, gone } = tools();
    const batch = await launch();
    await listed(batch);
    const machines = [{ label: batch.intents[0]!.label, handle: '' }];
    await until(world.patienceMs, 'it is gone', async () => {
      expect(await provider.destroy({ machines, target: 0 })).toEqual({ kind: 'asked' });
      return (await alive(provider)).length === 0;
    });
    await gone();
  });
}

function unknowns(tools: () => Tools): void {
  test('what cannot be asked is unknown: not empty, not gone, not launched', async () => {
    const { world, provider, launch, listed } = tools();
    const batch = await launch();
    const [machine] = await listed(batch);
    const repair = await world.breakDown();
    const during = batchOf(1, 2, world.batch);
    try {
      const listing = await provider.list();
      expect(listing).toMatchObject({ kind: 'unknown' });
      if (listing.kind === 'unknown') sentence(listing.reason, batch);
      const destroyed = await provider.destroy({ machines: [machine!], target: 0 });
      expect(destroyed).toMatchObject({ kind: 'unknown' });
      if (destroyed.kind === 'unknown') sentence(destroyed.reason, batch);
      const launched = await provider.launch(during);
      expect(['refused', 'unknown']).toContain(launched.kind);
      if (launched.kind === 'refused') expect(launched.refusal).toBe('unreachable');
      if (launched.kind !== 'launched') sentence(launched.reason, during);
    } finally {
      await repair();
    }
    await until(world.patienceMs, 'it can be asked again', async () => {
      return (await provider.list()).kind === 'known';
    });
    expect((await alive(provider)).map(({ handle }) => handle)).toContain(machine!.handle);
  });
}
