/** Replicas as machines: what SaladCloud shows of a group and its instances, in our words. */
import type { Machine, MachinePhase } from '../contract.ts';
import type { Group, SaladInstance } from './api.ts';

const FAILED = 'failed';
/** States in which SaladCloud does not bring instances up to the number of replicas. */
const AT_REST = new Set(['stopped', 'succeeded', FAILED]);
/** What stands in the place of a machine that is not known yet. */
const NO_MACHINE = '00000000-0000-0000-0000-000000000000';

export interface Seen {
  group: Group;
  instances: readonly SaladInstance[];
  priceHourMicros: number | null;
  /** How often each moved to another machine. */
  moves: (instance: SaladInstance) => number;
}

export function machinesOf(seen: Seen): Machine[] {
  const shown = seen.instances.map((instance) => machineOf(instance, seen));
  const alive = seen.instances.filter(isAlive).length;
  const missing = Math.max(0, seen.group.replicas - alive);
  return [...shown, ...Array.from({ length: missing }, () => missingOne(seen)).flat()];
}

export function isAlive({ state }: SaladInstance): boolean {
  return state !== 'stopping';
}

/** Nothing runs in it, and nothing will until it is started. */
export function isAtRest({ current_state: { status } }: Group): boolean {
  return AT_REST.has(status);
}

export function failureOf({ current_state: { status, description } }: Group): string | undefined {
  if (status !== FAILED) return undefined;
  return `SaladCloud could not prepare the image: ${description || 'it does not say why'}`;
}

/** Empty while it has none. */
export function hostOf({ machine_id: machine, state }: SaladInstance): string {
  return machine && machine !== NO_MACHINE && state !== 'allocating' ? machine : '';
}

function machineOf(instance: SaladInstance, { moves, priceHourMicros }: Seen): Machine {
  const { phase, reason } = phaseOf(instance);
  return {
    ...blank(priceHourMicros),
    handle: instance.id,
    phase,
    reason,
    host: hostOf(instance),
    restarts: moves(instance),
    billed: phase === 'running',
  };
}

/** A replica that has no instance yet: SaladCloud shows none while it prepares the image. */
function missingOne({ group, priceHourMicros }: Seen): Machine[] {
  const failure = failureOf(group);
  // It waits for what will not come, until it is given up.
  if (failure !== undefined) {
    return [{ ...blank(priceHourMicros), failure: 'WORKLOAD_FATAL', reason: failure }];
  }
  if (isAtRest(group)) return [];
  const { status, description } = group.current_state;
  const doing = status === 'pending' ? 'preparing the image' : 'waiting for a machine';
  const reason = description ? `${doing}: ${description}` : doing;
  return [{ ...blank(priceHourMicros), phase: 'queued', reason }];
}

function phaseOf(instance: SaladInstance): { phase: MachinePhase; reason: string } {
  switch (instance.state) {
    case 'allocating':
      return { phase: 'queued', reason: 'waiting for a machine' };
    case 'downloading':
      return { phase: 'booting', reason: pulling(instance) };
    case 'creating':
      return { phase: 'booting', reason: 'creating the container' };
    case 'running':
      return { phase: 'running', reason: instance.started === false ? 'starting' : '' };
    case 'stopping':
      return { phase: 'ending', reason: 'stopping' };
    default:
      return { phase: 'booting', reason: `state "${instance.state}"` };
  }
}

function pulling({ pulling_progress: progress }: SaladInstance): string {
  return progress ? `pulling the image, ${Math.round(progress)} %` : 'pulling the image';
}

function blank(priceHourMicros: number | null): Machine {
  return {
    label: '',
    handle: '',
    phase: 'queued',
    reason: '',
    failure: null,
    host: '',
    startsAtMs: null,
    leftMs: null,
    restarts: 0,
    billed: false,
    priceHourMicros,
  };
}
