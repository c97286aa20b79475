/** The TypeScript client's calls about pools, instances and hosts. */
import { call, type HttpOptions } from './http.ts';
import type { HostView, HostWord, InstanceView, PoolView } from './pools.ts';

export interface InstanceOptions {
  cursor?: string | undefined;
  limit?: number | undefined;
  pool?: string | undefined;
  ended?: boolean | undefined;
}

export function poolCalls(options: HttpOptions) {
  return {
    listPools: async (): Promise<PoolView[]> =>
      (await call<PoolView[]>(options, '/v1/pools', {})).data,
    lookAtPool: async (pool: string): Promise<PoolView> => {
      const path = `/v1/pools/${encodeURIComponent(pool)}/look`;
      return (await call<PoolView>(options, path, { method: 'POST' })).data;
    },
    listInstances: async (query: InstanceOptions) => {
      const path = '/v1/instances';
      const { data, meta } = await call<InstanceView[]>(options, path, { query: { ...query } });
      return {
        items: data,
        nextCursor: (meta['nextCursor'] as string | null | undefined) ?? null,
      };
    },
    getInstance: async (id: string): Promise<InstanceView> =>
      (await call<InstanceView>(options, instancePath(id), {})).data,
    destroyInstance: async (id: string): Promise<InstanceView> =>
      (await call<InstanceView>(options, instancePath(id), { method: 'DELETE' })).data,
    listHosts: async (): Promise<HostView[]> =>
      (await call<HostView[]>(options, '/v1/hosts', {})).data,
    setHost: async (body: HostWord): Promise<HostView> =>
      (await call<HostView>(options, '/v1/hosts/verdict', { method: 'POST', body })).data,
  };
}

function instancePath(id: string): string {
  return `/v1/instances/${encodeURIComponent(id)}`;
}
