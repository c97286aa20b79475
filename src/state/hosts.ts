/** Hosts and their reputation: what happened on them, remembered beyond their workers. */
import type { Host } from '../model/host.ts';
import { mark } from './changes.ts';
import type { SetHost } from './instanceMutations.ts';
import { DONE, missing, type Result } from './mutations.ts';
import type { State } from './state.ts';

/** Of what a host can be at fault. */
export type HostFault = 'failed' | 'stalled' | 'unwell' | 'attempt' | 'silent';

export function hostId(pool: string, name: string): string {
  return `${pool}/${name}`;
}

export function faultHost(
  state: State,
  pool: string,
  name: string,
  fault: HostFault,
  evidence: string,
  nowMs: number,
): void {
  const host = hostOf(state, pool, name, nowMs);
  host.faults++;
  host.penalty++;
  host.penaltyAtMs = nowMs;
  host.evidence = evidence;
  host.lastFaultAtMs = nowMs;
  touchHost(state, host, nowMs);
  const data = { host: host.id, fault, evidence };
  state.note(nowMs, { kind: 'host.fault', tenant: '', data });
}

export function setHost(state: State, mutation: SetHost, nowMs: number): Result {
  const host = state.machines.hosts.get(mutation.host);
  if (!host) return missing(`host ${mutation.host}`);
  const { verdict, by, tenant } = mutation;
  host.verdict = verdict;
  if (verdict === 'none') Object.assign(host, { penalty: 0, evidence: '' });
  touchHost(state, host, nowMs);
  const data = { by, host: host.id, verdict };
  state.note(nowMs, { kind: 'host.set', tenant, data });
  return DONE;
}

/** Known from now on. */
export function hostOf(state: State, pool: string, name: string, nowMs: number): Host {
  const id = hostId(pool, name);
  let host = state.machines.hosts.get(id);
  if (!host) {
    host = {
      ...{ id, pool, name, verdict: 'none', penalty: 0, penaltyAtMs: nowMs, faults: 0, good: 0 },
      ...{ evidence: '', lastFaultAtMs: null, lastSeenAtMs: nowMs, version: 0 },
    };
    state.machines.hosts.set(id, host);
    state.changes.hosts.set(host, 'insert');
  }
  return host;
}

function touchHost(state: State, host: Host, nowMs: number): void {
  host.version++;
  host.lastSeenAtMs = nowMs;
  mark(state.changes.hosts, host);
}
