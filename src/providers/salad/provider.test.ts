/** The provider of SaladCloud against the emulator, over real HTTP and with time that is passed. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ManualClock } from '../../../test/support/manualClock.ts';
import type { SaladEmulator } from '../../../test/support/salad/emulator.ts';
import { batch, bringUp, JOIN_TOKEN, machinesOf } from '../../../test/support/salad/pool.ts';
import { MINUTE, startSaladPool, UP_MS } from '../../../test/support/salad/pool.ts';
import type { SaladPool } from '../../../test/support/salad/pool.ts';
import type { Provider } from '../contract.ts';
import { groupName } from './definition.ts';
import { MARKS_PER_CALL } from './destroy.ts';

let pool: SaladPool;
let clock: ManualClock;
let emulator: SaladEmulator;
let open: SaladPool['open'];

beforeEach(async () => {
  pool = await startSaladPool();
  ({ clock, emulator, open } = pool);
});
afterEach(() => pool.close());

async function running(count: number): Promise<Provider> {
  const provider = open();
  await bringUp(pool, provider, count);
  return provider;
}

const changes = () =>
  emulator.requests.filter(({ method }) => method !== 'GET').map(({ method }) => method);

describe('a pool on SaladCloud', () => {
  it('comes up by itself and says at every step what it waits for', async () => {
    const provider = open();
    expect(await machinesOf(provider)).toEqual([]);
    await provider.launch(batch(1));
    const look = async (): Promise<string> => {
      const [machine] = await machinesOf(provider);
      return `${machine?.phase}: ${machine?.reason}`;
    };
    expect(await look()).toBe('queued: preparing the image');
    await clock.advance(MINUTE);
    expect(await look()).toBe('queued: waiting for a machine');
    emulator.conduct.stuckInAllocating = true;
    await clock.advance(20 * MINUTE);
    expect(await look()).toBe('queued: waiting for a machine');
    emulator.conduct.stuckInAllocating = false;
    await clock.advance(20_000 + 40_000);
    expect(await look()).toBe('booting: pulling the image, 40 %');
    expect((await machinesOf(provider))[0]).toMatchObject({ billed: false, label: '' });
    await clock.advance(MINUTE + 5000);
    const { id, machineId } = emulator.group().instances[0]!;
    const there = { handle: id, host: machineId, phase: 'running', billed: true, restarts: 0 };
    expect(await machinesOf(provider)).toMatchObject([{ ...there, priceHourMicros: 400_000 }]);
    await provider.close();
    expect(emulator.group().status()).toBe('running');
  });

  it('tells the agent in every replica what it needs', async () => {
    const authorities = `-----BEGIN CERTIFICATE-----\n${'x'.repeat(1500)}\n`;
    const provider = open({
      environment: { HF_HOME: '/data' },
      agentCommand: 'env; cat "$DROVER_CA_FILE"',
    });
    const asked = batch(1);
    const result = await provider.launch({ ...asked, agent: { ...asked.agent, authorities } });
    const { container, restartPolicy, autostart } = emulator.group();
    const variables = container.environment_variables ?? {};
    expect(variables).toMatchObject({
      DROVER_URL: 'https://drover.example:7070',
      DROVER_JOIN_TOKEN: JOIN_TOKEN,
      DROVER_AGENT_SELF_DESTRUCT_AFTER_MS: '60000',
      HF_HOME: '/data',
    });
    expect(`${variables['AGENT_CA_0']}${variables['AGENT_CA_1']}`).toBe(authorities);
    const [shell = '', ...words] = container.command ?? [];
    expect(words.join(' ')).not.toContain(JOIN_TOKEN);
    const home = mkdtempSync(join(tmpdir(), 'drover-salad-home-'));
    const where = { SALAD_INSTANCE_ID: '1234567890', SALAD_MACHINE_ID: 'm1' };
    const env = { HOME: home, PATH: process.env['PATH'], ...variables, ...where };
    const printed = execFileSync(shell, words, { env }).toString();
    rmSync(home, { recursive: true });
    const told = [
      'INSTANCE=1234567890',
      'MACHINE=salad:1234567890',
      'HOST=m1',
      'NAME=salad-12345678',
    ];
    for (const one of told) expect(printed).toContain(`DROVER_AGENT_${one}\n`);
    expect(printed.endsWith(authorities)).toBe(true);
    // A replica that does not know who it is would be nobody's machine.
    expect(() => execFileSync(shell, words, { env: variables, stdio: 'ignore' })).toThrow();
    expect({ restartPolicy, autostart }).toEqual({ restartPolicy: 'on_failure', autostart: true });
    // What is kept with the instance and shown to people holds no secret.
    expect(result).toMatchObject({ kind: 'launched', handles: [''] });
    expect(JSON.stringify([result, ...pool.logged])).not.toContain(JOIN_TOKEN);
    expect(JSON.stringify([result, ...pool.logged])).not.toContain(emulator.apiKey);
  });

  it('grows without a restart of what runs, and asks once for what it has', async () => {
    const provider = await running(2);
    const before = (await machinesOf(provider)).map(({ handle }) => handle);
    emulator.requests.length = 0;
    // Another image and token wait until nothing runs.
    const changed = open({ image: 'debian:14' });
    await changed.launch(batch(3, { intents: [{ label: 'a', joinToken: 'another' }] }));
    await changed.launch(batch(3));
    expect(changes()).toEqual(['PATCH']);
    const machines = await machinesOf(changed);
    expect(machines.map(({ handle }) => handle).slice(0, 2)).toEqual(before);
    expect(machines.map(({ phase }) => phase)).toEqual(['running', 'running', 'queued']);
    expect(await changed.list()).toMatchObject({ notice: expect.stringContaining('have changed') });

    await changed.destroy({ machines, target: 0 });
    await clock.advance(MINUTE);
    await changed.launch(batch(1, { intents: [{ label: 'a', joinToken: 'another' }] }));
    const { container } = emulator.group();
    expect(container.image).toBe('debian:14');
    expect(container.environment_variables?.['DROVER_JOIN_TOKEN']).toBe('another');
  });

  it('ends just the replicas it is asked to, and all of them by a stop', async () => {
    const provider = await running(3);
    const [first, second, third] = await machinesOf(provider);
    expect(await provider.destroy({ machines: [first!], target: 2 })).toEqual({ kind: 'asked' });
    const ending = await machinesOf(provider);
    expect(ending[0]).toMatchObject({ handle: first!.handle, phase: 'ending', billed: false });
    expect(await provider.destroy({ machines: [first!], target: 2 })).toEqual({ kind: 'asked' });
    await clock.advance(3000);
    const handles = async () => (await machinesOf(provider)).map(({ handle }) => handle);
    expect(await handles()).toEqual([second!.handle, third!.handle]);
    // One that was to stay before may go now.
    await provider.destroy({ machines: [second!], target: 1 });
    await clock.advance(3000);
    expect(await handles()).toEqual([third!.handle]);

    await provider.destroy({ machines: [third!], target: 0 });
    await clock.advance(3000);
    expect(await handles()).toEqual([]);
    expect(emulator.group().status()).toBe('stopped');
    // Replicas of stopped groups would count against the quota.
    expect(emulator.group().replicas).toBe(0);
    const billedMs = emulator.group().billedMs();
    await clock.advance(MINUTE);
    expect(emulator.group().billedMs()).toBe(billedMs);
    expect(await provider.destroy({ machines: [third!], target: 0 })).toEqual({ kind: 'asked' });
  });

  it('puts others in the place of those that go while as many are wanted', async () => {
    const provider = await running(2);
    const [first, second] = await machinesOf(provider);
    await provider.launch(batch(2));
    await provider.destroy({ machines: [first!], target: 2 });
    await clock.advance(UP_MS);
    const handles = (await machinesOf(provider)).map(({ handle }) => handle);
    expect(handles).toHaveLength(2);
    expect(handles).toContain(second!.handle);
    expect(handles).not.toContain(first!.handle);
  });

  it('gives up replicas that have no instance yet', async () => {
    const provider = open();
    await provider.launch(batch(2));
    const machines = await machinesOf(provider);
    expect(machines.map(({ handle }) => handle)).toEqual(['', '']);
    expect(await provider.destroy({ machines: [machines[0]!], target: 1 })).toEqual({
      kind: 'asked',
    });
    expect(await machinesOf(provider)).toHaveLength(1);
    expect(await provider.destroy({ machines, target: 0 })).toEqual({ kind: 'asked' });
    await clock.advance(UP_MS);
    expect(await machinesOf(provider)).toEqual([]);
  });

  it('marks many in several calls, so that a minute has requests left', async () => {
    const count = MARKS_PER_CALL + 5;
    const provider = await running(count);
    const [first] = await machinesOf(provider);
    const request = { machines: [first!], target: count - 1 };
    expect(await provider.destroy(request)).toMatchObject({
      kind: 'unknown',
      reason: expect.stringContaining('4 replicas'),
    });
    await clock.advance(MINUTE);
    expect(await provider.destroy(request)).toEqual({ kind: 'asked' });
    await clock.advance(MINUTE);
    const handles = (await machinesOf(provider)).map(({ handle }) => handle);
    expect(handles).toHaveLength(count - 1);
    expect(handles).not.toContain(first!.handle);
  });

  it('tells a move to another machine as a restart, with the events for a person', async () => {
    const provider = await running(2);
    const [first, second] = await machinesOf(provider);
    const [one, two] = emulator.group().instances;
    emulator.group().reallocate(one!, true);
    emulator.group().reallocate(two!, false);
    expect(await machinesOf(provider)).toMatchObject([
      { handle: first!.handle, phase: 'queued', host: '', billed: false, restarts: 1 },
      { phase: 'queued', failure: null },
    ]);
    await clock.advance(UP_MS);
    const [moved, other] = await machinesOf(provider);
    expect(moved).toMatchObject({ handle: first!.handle, restarts: 1, failure: null });
    expect(moved!.host).not.toBe(first!.host);
    expect(other).toMatchObject({ restarts: 0, failure: null });
    expect(other!.handle).not.toBe(second!.handle);
    // Nobody looked while it was under way.
    emulator.group().reallocate(one!, true);
    await clock.advance(UP_MS);
    expect(await machinesOf(provider)).toMatchObject([{ restarts: 2 }, { restarts: 0 }]);
    expect(await provider.logs?.(moved!)).toContain('instance_interrupted');
    expect(await provider.logs?.(moved!)).not.toContain(other!.handle);
  });
});

describe('the name of a group', () => {
  it("is the same for ever, valid and no other pool's", () => {
    expect(groupName('c7x', 'salad')).toBe('drover-c7x-salad');
    const odd = ['Salad', 'sal ad', 'sal-ad-', 'ü', 'x'.repeat(100), `${'x'.repeat(99)}y`];
    const names = odd.map((name) => groupName('c7x', name));
    for (const name of names) expect(name).toMatch(/^[a-z][a-z0-9-]{0,61}[a-z0-9]$/);
    expect(new Set(names).size).toBe(odd.length);
    expect(groupName('c7x', 'Salad')).toBe(names[0]);
  });
});
