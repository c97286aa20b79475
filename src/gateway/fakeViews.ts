/** What a fake coordinator shows of its tokens and its one worker. */
import type { Principal } from '../model/token.ts';
import type { TokenView, WorkerView } from '../protocol/fleet.ts';

export function viewOf(principal: Principal): TokenView {
  const { token, tenant, user, scopes } = principal;
  return {
    id: token,
    kind: 'user',
    name: '',
    tenant,
    user,
    scopes,
    pool: 'default',
    maxLiveWorkers: 0,
    createdAtMs: 1,
    expiresAtMs: null,
    revokedAtMs: null,
    lastUsedAtMs: null,
    attempt: null,
  };
}

export function fakeWorker(): WorkerView {
  return {
    id: 'w1',
    name: 'machine',
    pool: 'default',
    state: 'ONLINE',
    draining: false,
    address: '127.0.0.1',
    network: 'local',
    attributes: {},
    agentVersion: '0.1.0',
    joinedAtMs: 1,
    lastSeenAtMs: 1,
    host: 'node',
    instance: null,
    endsAtMs: null,
    problems: [],
    attempts: 0,
    total: { cpuMillis: 1000, memoryBytes: 1, devices: 0 },
    free: { cpuMillis: 1000, memoryBytes: 1, devices: 0 },
    devices: [],
  };
}
