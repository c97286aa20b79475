/** The one place where an instance's state changes, and what is remembered of it. */
import { moveInstance, type INSTANCE_MOVES } from '../core/lifecycle/instance.ts';
import type { EventKind } from '../model/event.ts';
import type { Instance } from '../model/instance.ts';
import { mark } from './changes.ts';
import type { State } from './state.ts';

const MOVE_EVENTS: Record<keyof typeof INSTANCE_MOVES, EventKind> = {
  request: 'instance.requested',
  boot: 'instance.booting',
  probe: 'instance.booting',
  join: 'instance.joined',
  restart: 'instance.requested',
  drain: 'instance.draining',
  destroy: 'instance.destroying',
  gone: 'instance.ended',
};

export function move(
  state: State,
  instance: Instance,
  name: keyof typeof INSTANCE_MOVES,
  nowMs: number,
): void {
  instance.state = moveInstance(name, instance.state);
  if (name === 'request') instance.requestedAtMs = nowMs;
  if (name === 'boot' || name === 'probe') {
    instance.requestedAtMs ??= nowMs;
    instance.runningAtMs ??= nowMs;
  }
  if (name === 'join') instance.joinedAtMs = nowMs;
  touchInstance(state, instance);
  noteInstance(state, MOVE_EVENTS[name], instance, nowMs, instance.reason);
}

export function touchInstance(state: State, instance: Instance): void {
  instance.version++;
  mark(state.changes.instances, instance);
}

export function noteInstance(
  state: State,
  kind: EventKind,
  { id, pool, handle }: Instance,
  nowMs: number,
  reason: string,
): void {
  state.note(nowMs, { kind, tenant: '', data: { instance: id, pool, handle, reason } });
}
