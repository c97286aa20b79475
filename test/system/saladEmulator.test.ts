/** The emulator of SaladCloud, judged by the official SDK: it checks every reply by its schema. */
import { SaladCloudSdk } from '@saladtechnologies-oss/salad-cloud-sdk';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../support/manualClock.ts';
import { startSaladEmulator, type SaladEmulator } from '../support/salad/emulator.ts';
import { GPU_CLASSES } from '../support/salad/wire.ts';

const ORGANIZATION = 'a-lab';
const PROJECT = 'gpus';
const NAME = 'from-the-sdk';
const WHERE = [ORGANIZATION, PROJECT, NAME] as const;

let clock: ManualClock;
let emulator: SaladEmulator;
let sdk: SaladCloudSdk;

beforeEach(async () => {
  clock = new ManualClock();
  emulator = await startSaladEmulator({ clock, quota: 10 });
  const { apiKey, url } = emulator;
  sdk = new SaladCloudSdk({ apiKey, baseUrl: url, timeoutMs: 5000 });
});
afterEach(() => emulator.close());

function create(replicas = 2) {
  return sdk.containerGroups.createContainerGroup(ORGANIZATION, PROJECT, {
    name: NAME,
    autostartPolicy: true,
    restartPolicy: 'always',
    replicas,
    container: {
      image: 'debian:13',
      command: ['sleep', 'infinity'],
      environmentVariables: { GREETING: 'hello' },
      resources: { cpu: 2, memory: 4096, gpuClasses: [GPU_CLASSES[0]?.id ?? ''] },
    },
  });
}

const group = async () => (await sdk.containerGroups.getContainerGroup(...WHERE)).data!;
const instances = async () =>
  (await sdk.containerGroups.listContainerGroupInstances(...WHERE)).data!.instances;

describe('the official SDK against the emulator', () => {
  it('takes a group through its life', async () => {
    const { data: made, metadata } = await create();
    expect(metadata.status).toBe(201);
    expect(made).toMatchObject({ name: NAME, replicas: 2, version: 1 });
    expect((await group()).currentState.status).toBe('pending');
    expect(await instances()).toEqual([]);

    await clock.advance(60_000);
    expect((await group()).currentState.status).toBe('deploying');
    expect((await instances()).map(({ state }) => state)).toEqual(['allocating', 'allocating']);
    await clock.advance(70_000);
    const [pulling] = await instances();
    expect(pulling).toMatchObject({ state: 'downloading', pullingProgress: 50 });
    await clock.advance(55_000);
    const { currentState } = await group();
    expect(currentState.status).toBe('running');
    expect(currentState.instanceStatusCounts.runningCount).toBe(2);

    const listed = await sdk.containerGroups.listContainerGroups(ORGANIZATION, PROJECT);
    expect(listed.data?.items.map(({ name }) => name)).toEqual([NAME]);
    const patched = await sdk.containerGroups.updateContainerGroup(...WHERE, { replicas: 3 });
    expect(patched.data?.replicas).toBe(3);
    expect(await instances()).toHaveLength(3);

    expect((await sdk.containerGroups.stopContainerGroup(...WHERE)).metadata.status).toBe(202);
    expect((await group()).currentState.status).toBe('stopped');
    await clock.advance(3000);
    expect(await instances()).toEqual([]);
    expect((await sdk.containerGroups.startContainerGroup(...WHERE)).metadata.status).toBe(202);
    expect(await instances()).toHaveLength(3);

    expect((await sdk.containerGroups.deleteContainerGroup(...WHERE)).metadata.status).toBe(202);
    await expect(group()).rejects.toMatchObject({ status: 404 });
    // The name stays taken for a while.
    await expect(create()).rejects.toMatchObject({ status: 400 });
  });

  it('moves, restarts and prices single instances', async () => {
    await create(2);
    await clock.advance(200_000);
    const [first, second] = await instances();
    const { containerGroups } = sdk;
    await containerGroups.reallocateContainerGroupInstance(...WHERE, first!.id);
    await clock.advance(130_000);
    const one = await containerGroups.getContainerGroupInstance(...WHERE, first!.id);
    expect(one.metadata.status).toBe(202);
    expect(one.data).toMatchObject({ id: first!.id, state: 'running' });
    expect(one.data?.machineId).not.toBe(first!.machineId);

    await containerGroups.recreateContainerGroupInstance(...WHERE, second!.id);
    expect((await instances())[1]).toMatchObject({ state: 'creating' });
    await clock.advance(5000);
    await containerGroups.restartContainerGroupInstance(...WHERE, second!.id);
    await clock.advance(5000);

    // The dearer one stays.
    const cost = { deletionCost: 7 };
    await containerGroups.updateContainerGroupInstance(...WHERE, second!.id, cost);
    await containerGroups.updateContainerGroup(...WHERE, { replicas: 1 });
    await clock.advance(3000);
    expect(await instances()).toMatchObject([{ id: second!.id, deletionCost: 7, ready: true }]);

    const { data: logs } = await sdk.systemLogs.getSystemLogs(...WHERE);
    expect(logs?.items.map(({ eventName }) => eventName)).toContain('instance_interrupted');
  });

  it('answers errors as the SDK reads them', async () => {
    await expect(create(11)).rejects.toMatchObject({ status: 403 });
    const { data: quotas } = await sdk.quotas.getQuotas(ORGANIZATION);
    expect(quotas?.containerGroupsQuotas).toMatchObject({
      containerReplicasQuota: 10,
      containerReplicasUsed: 0,
    });
    const { data: classes } = await sdk.organizationData.listGpuClasses(ORGANIZATION);
    expect(classes?.items.map(({ name }) => name)).toEqual(GPU_CLASSES.map(({ name }) => name));
    emulator.fail({ kind: 'too-many', retryAfter: '7' });
    await expect(group()).rejects.toMatchObject({ status: 429 });
    // It tries an error page three times.
    emulator.fail({ kind: 'html', times: 3 });
    await expect(group()).rejects.toMatchObject({ metadata: { status: 502 } });
    await create();
    await expect(create()).rejects.toMatchObject({ status: 400 });
    sdk.apiKey = 'another';
    await expect(group()).rejects.toMatchObject({ metadata: { status: 401 } });
  });
});
