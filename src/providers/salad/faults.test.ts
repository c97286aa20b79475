/** What the provider makes of SaladCloud's faults: quotas, 429, error pages, lost replies. */
import { rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ManualClock } from '../../../test/support/manualClock.ts';
import type { SaladEmulator } from '../../../test/support/salad/emulator.ts';
import { batch, bringUp, machinesOf, MINUTE, UP_MS } from '../../../test/support/salad/pool.ts';
import { startSaladPool, type SaladPool } from '../../../test/support/salad/pool.ts';
import { until } from '../../../test/support/wait.ts';

let pool: SaladPool;
let clock: ManualClock;
let emulator: SaladEmulator;
let open: SaladPool['open'];

beforeEach(async () => {
  pool = await startSaladPool({ quota: 5 });
  ({ clock, emulator, open } = pool);
});
afterEach(() => pool.close());

describe('a reply that is lost', () => {
  it('leaves the group to be found by its name', async () => {
    const provider = open();
    emulator.fail({ kind: 'lost', method: 'POST' });
    expect(await provider.launch(batch(1))).toMatchObject({ kind: 'unknown' });
    expect(await machinesOf(provider)).toHaveLength(1);
    // Nothing of it is remembered here.
    expect(await open().launch(batch(1))).toMatchObject({ kind: 'launched' });
    emulator.fail({ kind: 'lost', method: 'PATCH' });
    expect(await provider.launch(batch(2))).toMatchObject({ kind: 'unknown' });
    expect(await machinesOf(provider)).toHaveLength(2);
    expect(await provider.launch(batch(2))).toMatchObject({ kind: 'launched' });
    expect([...emulator.cloud.groups.keys()]).toEqual(['drover-c7x-salad']);

    await clock.advance(UP_MS);
    emulator.fail({ kind: 'lost', method: 'POST', path: /stop$/ });
    const all = { machines: await machinesOf(provider), target: 0 };
    expect(await provider.destroy(all)).toMatchObject({ kind: 'unknown' });
    expect(await provider.destroy(all)).toEqual({ kind: 'asked' });
    expect(emulator.group()).toMatchObject({ replicas: 0 });
    await clock.advance(3000);
    // Replicas without a start are no machines.
    emulator.fail({ kind: 'unsent', method: 'POST', path: /start$/ });
    expect(await provider.launch(batch(1))).toMatchObject({ kind: 'unknown' });
    expect(await machinesOf(provider)).toEqual([]);
    expect(await provider.launch(batch(1))).toMatchObject({ kind: 'launched' });
    expect(await machinesOf(provider)).toHaveLength(1);
  });

  it('is waited for no longer than the settings say', async () => {
    const provider = open({ replyTimeoutMs: 9000 });
    emulator.fail({ kind: 'hang', method: 'POST' });
    const launch = provider.launch(batch(1));
    await until('it was asked', () => emulator.requests.some(({ method }) => method === 'POST'));
    await clock.advance(9000);
    expect(await launch).toMatchObject({ kind: 'unknown', reason: 'no answer within 9000 ms' });
    emulator.fail({ kind: 'huge' });
    expect(await provider.list()).toMatchObject({
      kind: 'unknown',
      reason: 'a reply of more than 16777216 bytes',
    });
    emulator.fail({ kind: 'unsent', method: 'GET' });
    expect(await provider.list()).toMatchObject({ kind: 'unknown' });
  });

  it('is not made up for by an error page', async () => {
    const provider = open();
    emulator.fail({ kind: 'html' });
    const listing = await provider.list();
    expect(listing).toMatchObject({ kind: 'unknown' });
    expect(JSON.stringify(listing)).toContain(
      'SaladCloud answered 502: Bad gateway Error The origin did not answer.',
    );
    // Before anything was asked for, and after; a page that says 404 is no word on the group.
    emulator.fail({ kind: 'html' });
    expect(await provider.launch(batch(1))).toMatchObject({ refusal: 'unreachable' });
    emulator.fail({ kind: 'html', method: 'POST', status: 403 });
    expect(await provider.launch(batch(1))).toMatchObject({ kind: 'unknown' });
    emulator.fail({ kind: 'html', status: 404, path: /containers/ });
    expect(await provider.list()).toMatchObject({ kind: 'unknown' });
    emulator.fail({ kind: 'html' });
    const all = { machines: [{ label: '', handle: 'x' }], target: 0 };
    expect(await provider.destroy(all)).toMatchObject({ kind: 'unknown' });
  });
});

describe('a refusal', () => {
  it.each([403, 400])('above the quota is one of capacity, also as %i', async (status) => {
    emulator.cloud.quotaStatus = status;
    const provider = open();
    const above = await provider.launch(batch(6));
    const capacity = { kind: 'refused', refusal: 'capacity' };
    expect(above).toMatchObject({
      ...capacity,
      reason: expect.stringContaining("0 of the organization's 5 replicas are in use"),
    });
    expect(await machinesOf(provider)).toEqual([]);
    await bringUp(pool, provider, 4);
    expect(await provider.launch(batch(6))).toMatchObject(capacity);
    expect(await machinesOf(provider)).toHaveLength(4);
    expect(await provider.launch(batch(5))).toMatchObject({ kind: 'launched' });
  });

  it('of too many requests holds back every call for as long as it says', async () => {
    const provider = open();
    emulator.fail({ kind: 'too-many', retryAfter: '7' });
    expect(await provider.list()).toMatchObject({ kind: 'unknown', retryAfterMs: 7000 });
    const asked = emulator.requests.length;
    const held = await provider.launch(batch(1));
    expect(held).toMatchObject({ refusal: 'unreachable', retryAfterMs: 7000 });
    expect(emulator.requests).toHaveLength(asked);
    await clock.advance(7000);
    expect(await provider.launch(batch(1))).toMatchObject({ kind: 'launched' });
    emulator.fail({ kind: 'too-many' });
    expect(await provider.list()).toMatchObject({ retryAfterMs: 15_000 });
    await clock.advance(15_000);
    emulator.fail({ kind: 'too-many', retryAfter: new Date(clock.now() + 20_000).toUTCString() });
    expect(await provider.list()).toMatchObject({ retryAfterMs: expect.closeTo(20_000, -3) });
    await clock.advance(20_000);
    emulator.fail({ kind: 'too-many', retryAfter: '99999' });
    expect(await provider.list()).toMatchObject({ retryAfterMs: 10 * MINUTE });
  });

  it('comes from Drover itself before it asks too often', async () => {
    const provider = open({ requestsPerMinute: 160 });
    let unknown = 0;
    for (let second = 0; second < 60; second++) {
      for (let call = 0; call < 10; call++) {
        const listing = await provider.list();
        if (listing.kind === 'unknown') unknown++;
      }
      await clock.advance(1000);
    }
    expect(unknown).toBeGreaterThan(0);
    expect(emulator.requests.length).toBeGreaterThan(200);
    expect(emulator.requests.length).toBeLessThanOrEqual(240);
  });

  it.each([
    ['a GPU class', { gpuClasses: ['RTX 409 (24 GB)'] }, /did you mean "RTX 4090 \(24 GB\)"/],
    ['a class id', { gpuClasses: ['11111111-0000-4000-8000-000000000000'] }, /gpu_classes/],
    ['an organization', { organization: 'no-lab' }, /404.*no such organization/],
    ['a project', { project: 'no-project' }, /404.*no such project/],
  ])('says which setting is wrong: %s', async (_what, settings, reason) => {
    const provider = open({ gpuClasses: [], ...settings });
    const result = await provider.launch(batch(1));
    expect(result).toMatchObject({ kind: 'refused', refusal: 'configuration' });
    expect(JSON.stringify(result).replaceAll('\\', '')).toMatch(reason);
  });

  it('of the key is told without the key, and a new one needs no restart', async () => {
    const provider = open({ gpuClasses: [] });
    const right = emulator.apiKey;
    writeFileSync(pool.keyFile, 'a-wrong-key');
    const result = await provider.launch(batch(1));
    expect(result).toMatchObject({
      refusal: 'configuration',
      reason: expect.stringMatching(/401/),
    });
    const listing = await provider.list();
    expect(listing).toMatchObject({ kind: 'unknown' });
    expect(JSON.stringify([result, listing, pool.logged])).not.toContain('a-wrong-key');
    rmSync(pool.keyFile);
    const missing = await provider.launch(batch(1));
    expect(missing).toMatchObject({
      refusal: 'configuration',
      reason: expect.stringMatching(/key.*ENOENT/),
    });
    expect(await open({ apiKeyFile: '' }).list()).toMatchObject({
      reason: expect.stringMatching(/SALAD_API_KEY/),
    });
    writeFileSync(pool.keyFile, right);
    expect(await provider.launch(batch(1))).toMatchObject({ kind: 'launched' });
  });
});

describe('an image that cannot be prepared', () => {
  it('is a fault of the workload with its reason, until another one is named', async () => {
    const provider = open();
    emulator.conduct.imageFailure = 'manifest unknown';
    await provider.launch(batch(2));
    await clock.advance(MINUTE);
    const fatal = {
      phase: 'queued',
      failure: 'WORKLOAD_FATAL',
      reason: expect.stringMatching(/manifest unknown/),
    };
    const listing = await provider.list();
    expect(listing).toMatchObject({ notice: expect.stringMatching(/manifest unknown/) });
    const machines = await machinesOf(provider);
    expect(machines).toMatchObject([fatal, fatal]);
    expect(await provider.destroy({ machines, target: 0 })).toEqual({ kind: 'asked' });
    expect(await machinesOf(provider)).toEqual([]);

    emulator.conduct.imageFailure = '';
    const [machine] = await bringUp(pool, open({ image: 'debian:14' }), 1);
    expect(machine).toMatchObject({ billed: true, failure: null });
  });
});

describe('a container that ends by itself', () => {
  it('is no machine any more, and the next launch starts the group again', async () => {
    let ends: ((code: number) => void) | undefined;
    await pool.close();
    pool = await startSaladPool({
      run: () => ({ kill() {}, ended: new Promise<number>((resolve) => (ends = resolve)) }),
    });
    ({ clock, emulator, open } = pool);
    const provider = open();
    await bringUp(pool, provider, 1);
    // It crashed: SaladCloud starts it again on the same machine.
    ends?.(1);
    await clock.settle();
    expect(await machinesOf(provider)).toMatchObject([{ phase: 'booting' }]);
    await clock.advance(5000);
    // It ended itself.
    ends?.(0);
    await clock.settle();
    expect(emulator.group().status()).toBe('succeeded');
    expect(await machinesOf(provider)).toEqual([]);
    await bringUp(pool, provider, 1);
  });
});
