/** Hosts and their reputation: what happened on them, remembered beyond their workers. */
import { chargeHost, creditHost, judgeHost, newHost, type HostFault } from '../core/reputation.ts';
import type { Host } from '../model/host.ts';
import { mark } from './changes.ts';
import type { SetHost } from './instanceMutations.ts';
import { DONE, missing, type Result } from './mutations.ts';
import type { State } from './state.ts';

export function faultHost(
  state: State,
  at: { pool: string; name: string },
  fault: HostFault,
  evidence: string,
  nowMs: number,
): void {
  const host = hostOf(state, at, nowMs);
  change(state, host, chargeHost(host, fault, evidence, nowMs));
  const data = { host: host.id, fault, evidence };
  state.note(nowMs, { kind: 'host.fault', tenant: '', data });
}

/** An attempt ended there without a fault of the machine: told only where something is held. */
export function praiseHost(
  state: State,
  at: { pool: string; name: string },
  ranMs: number,
  nowMs: number,
): void {
  const host = state.machines.hosts.get(idOf(at));
  if (host && host.penalty > 0) change(state, host, creditHost(host, ranMs, nowMs));
}

export function setHost(state: State, mutation: SetHost, nowMs: number): Result {
  const host = state.machines.hosts.get(mutation.host);
  if (!host) return missing(`host ${mutation.host}`);
  const { word, by, tenant } = mutation;
  change(state, host, judgeHost(host, word, nowMs));
  state.note(nowMs, { kind: 'host.set', tenant, data: { by, host: host.id, word } });
  return DONE;
}

/** Known from now on. */
function hostOf(state: State, at: { pool: string; name: string }, nowMs: number): Host {
  const id = idOf(at);
  const known = state.machines.hosts.get(id);
  if (known) return known;
  const host = newHost({ id, pool: at.pool, name: at.name }, nowMs);
  state.machines.hosts.set(id, host);
  state.changes.hosts.set(host, 'insert');
  return host;
}

function idOf({ pool, name }: { pool: string; name: string }): Host['id'] {
  return `${pool}/${name}`;
}

function change(state: State, host: Host, to: Host): void {
  Object.assign(host, to, { version: host.version + 1 });
  mark(state.changes.hosts, host);
}
