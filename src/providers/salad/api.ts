/** What we use of the public API of SaladCloud, for one container group. */
import { z } from 'zod';
import type { Reply, Send } from './requests.ts';

/** Of its replies only what we look at; the rest may change. */
const group = z.object({
  replicas: z.int().min(0),
  container: z.object({
    image: z.string(),
    command: z.array(z.string()).nullish(),
    environment_variables: z.record(z.string(), z.unknown()).nullish(),
    resources: z.record(z.string(), z.unknown()).default({}),
  }),
  current_state: z.object({ status: z.string(), description: z.string().nullish() }),
});
export type Group = z.output<typeof group>;

const instance = z.object({
  id: z.string().min(1),
  machine_id: z.string().nullish(),
  state: z.string(),
  pulling_progress: z.number().nullish(),
  ready: z.boolean().nullish(),
  started: z.boolean().nullish(),
  deletion_cost: z.number().nullish(),
});
export type SaladInstance = z.output<typeof instance>;
const instances = z.object({ instances: z.array(instance) });

const quotas = z.object({
  container_groups_quotas: z.object({
    container_replicas_quota: z.number(),
    container_replicas_used: z.number(),
  }),
});
type Quotas = z.output<typeof quotas>['container_groups_quotas'];

const gpuClasses = z.object({
  items: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      prices: z.array(z.object({ price: z.string(), priority: z.string().nullish() })).default([]),
    }),
  ),
});
export type GpuClass = z.output<typeof gpuClasses>['items'][number];

const systemLogs = z.object({
  items: z.array(
    z.object({
      event_name: z.string(),
      event_time: z.string(),
      instance_id: z.string().nullish(),
      machine_id: z.string().nullish(),
    }),
  ),
});
type SystemLog = z.output<typeof systemLogs>['items'][number];

export interface SaladApi {
  group(): Promise<Reply<Group>>;
  create(definition: object): Promise<Reply<unknown>>;
  patch(change: object): Promise<Reply<unknown>>;
  start(): Promise<Reply<unknown>>;
  stop(): Promise<Reply<unknown>>;
  instances(): Promise<Reply<SaladInstance[]>>;
  /** When the group shrinks, those with the lowest go first. */
  setDeletionCost(id: string, cost: number): Promise<Reply<unknown>>;
  quotas(): Promise<Reply<Quotas>>;
  gpuClasses(): Promise<Reply<GpuClass[]>>;
  systemLogs(): Promise<Reply<SystemLog[]>>;
}

const nothing = (): undefined => undefined;

export function createApi(send: Send, project: string, name: string): SaladApi {
  const all = `/projects/${project}/containers`;
  const one = `${all}/${name}`;
  return {
    group: () => send({ method: 'GET', path: one, read: (body) => group.parse(body) }),
    create: (body) => send({ method: 'POST', path: all, body, read: nothing }),
    patch: (body) => send({ method: 'PATCH', path: one, body, read: nothing }),
    start: () => send({ method: 'POST', path: `${one}/start`, read: nothing }),
    stop: () => send({ method: 'POST', path: `${one}/stop`, read: nothing }),
    instances: () =>
      send({
        method: 'GET',
        path: `${one}/instances`,
        read: (body) => instances.parse(body).instances,
      }),
    setDeletionCost: (id, cost) =>
      send({
        method: 'PATCH',
        path: `${one}/instances/${encodeURIComponent(id)}`,
        body: { deletion_cost: cost },
        read: nothing,
      }),
    quotas: () =>
      send({
        method: 'GET',
        path: '/quotas',
        read: (body) => quotas.parse(body).container_groups_quotas,
      }),
    gpuClasses: () =>
      send({ method: 'GET', path: '/gpu-classes', read: (body) => gpuClasses.parse(body).items }),
    systemLogs: () =>
      send({
        method: 'GET',
        path: `${one}/system-logs`,
        read: (body) => systemLogs.parse(body).items,
      }),
  };
}
