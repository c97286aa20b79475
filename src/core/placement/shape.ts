/** A request made ready to be held against many workers. */
import { MISFITS, WHOLE_DEVICE, matches, type Capacity, type Misfit } from './capacity.ts';
import { attributeOf, preference, tooSmall, UNSUITABLE, unsuitable } from './constraints.ts';
import type { Unsuitable } from './constraints.ts';
import { antiAffinityGroup } from './holdings.ts';
import type { Kind } from './kinds.ts';
import type { PlacementRequest, PlannerWorker } from './request.ts';
import type { Score } from './score.ts';
import type { WorkerState } from './states.ts';

/** Why a worker is passed over, in the order it is checked. */
export const REJECTIONS = [
  ...UNSUITABLE,
  'anti-affinity',
  'exclusive',
  ...MISFITS,
  'gang',
] as const;
export type Rejection = (typeof REJECTIONS)[number];

/** What a kind of worker is to a request, whatever is held on it. */
export interface Standing {
  kind: Kind;
  unsuitable: Unsuitable | null;
  tooSmall: Misfit | null;
  /** Positions of devices that match. */
  positions: readonly number[];
  /** More preferred first, then cheaper; before any score. */
  preference: number;
  priceMicros: number;
  /** Members of a gang must be of one; null: it shares with nobody. */
  locality: string | null;
}

export class Shape {
  readonly request: PlacementRequest;
  readonly #group: string;
  /** By the kind's id; one that is gone may have left its id to another. */
  readonly #standings: (Standing | undefined)[] = [];
  /** Written over by each look, and never cut: see score.ts. */
  readonly #picked: number[] = [];

  constructor(request: PlacementRequest) {
    this.request = request;
    this.#group = antiAffinityGroup(request);
  }

  standing(kind: Kind): Standing {
    const known = this.#standings[kind.id];
    if (known?.kind === kind) return known;
    return (this.#standings[kind.id] = standingOf(kind, this.request));
  }

  /** A quick look that is right when it says no. */
  mayFit(state: WorkerState): boolean {
    const { cpuMillis, memoryBytes, device } = this.request.resources;
    if (cpuMillis > state.cpuFree || memoryBytes > state.memoryFree) return false;
    if (!device) return true;
    if (device.share < WHOLE_DEVICE) return device.share <= state.deviceMostFree;
    return device.count <= state.idleDevices;
  }

  /** The first thing that rules the state out, or null. */
  rejection(state: WorkerState): Rejection | null {
    const standing = this.standing(state.kind);
    if (standing.unsuitable) return standing.unsuitable;
    if (this.#group !== '' && state.groups.includes(this.#group)) return 'anti-affinity';
    const { resources, placement } = this.request;
    if (state.taken || (placement.exclusive && !state.idle)) return 'exclusive';
    if (!this.#hasDevices(state, standing)) return 'devices';
    if (resources.cpuMillis > state.cpuFree) return 'cpus';
    if (resources.memoryBytes > state.memoryFree) return 'memory';
    return resources.ports > state.portsFree ? 'ports' : null;
  }

  /** Less is better; infinite where it does not fit. */
  score(state: WorkerState, score: Score): number {
    if (this.rejection(state)) return Number.POSITIVE_INFINITY;
    const { resources, placement } = this.request;
    if (placement.arrangement === 'spread') return usedAfter(state, this.request);
    if (!resources.device) return score.withoutDevices(state, resources);
    if (resources.device.share === WHOLE_DEVICE) return this.#scoreWhole(state, score);
    return this.#scoreShare(state, score, null);
  }

  /** Indices of the devices it gets on a worker in this state; it must fit. */
  pickDevices(state: WorkerState, capacity: Capacity, score: Score): number[] {
    const { device } = this.request.resources;
    if (!device) return [];
    const { positions } = this.standing(state.kind);
    const { devices } = capacity.resources;
    const picked: number[] = [];
    if (device.share === WHOLE_DEVICE) {
      for (const position of positions) {
        if (capacity.deviceFree[position] !== WHOLE_DEVICE) continue;
        picked.push((devices[position] as { index: number }).index);
        if (picked.length === device.count) break;
      }
      return picked;
    }
    const choice = { position: -1 };
    this.#scoreShare(state, score, choice);
    const level = state.devices[choice.position];
    const position = state.kind.uniform
      ? capacity.deviceFree.findIndex((free) => free === level)
      : choice.position;
    return [(devices[position] as { index: number }).index];
  }

  /** How many such tasks fit on one worker in this state. */
  room(state: WorkerState): number {
    if (this.rejection(state)) return 0;
    const { resources, placement } = this.request;
    if (placement.exclusive || this.#group !== '') return 1;
    const { cpuMillis, memoryBytes, ports, device } = resources;
    let room = Number.MAX_SAFE_INTEGER;
    if (cpuMillis > 0) room = Math.min(room, Math.floor(state.cpuFree / cpuMillis));
    if (memoryBytes > 0) room = Math.min(room, Math.floor(state.memoryFree / memoryBytes));
    if (ports > 0) room = Math.min(room, Math.floor(state.portsFree / ports));
    if (!device) return room;
    let times = 0;
    for (const position of this.standing(state.kind).positions) {
      const free = state.devices[position] as number;
      if (free > 0) times += Math.floor(free / device.share);
    }
    return Math.min(room, Math.floor(times / device.count));
  }

  #hasDevices(state: WorkerState, { positions }: Standing): boolean {
    const { device } = this.request.resources;
    if (!device) return true;
    let left = device.count;
    for (let at = 0; at < positions.length; at++) {
      const free = state.devices[positions[at] as number] as number;
      if (free >= device.share && --left === 0) return true;
    }
    return false;
  }

  #scoreWhole(state: WorkerState, score: Score): number {
    const { resources } = this.request;
    const { positions } = this.standing(state.kind);
    const wanted = resources.device?.count ?? 0;
    const picked = this.#picked;
    let count = 0;
    for (let at = 0; count < wanted && at < positions.length; at++) {
      const position = positions[at] as number;
      if (state.devices[position] === WHOLE_DEVICE) picked[count++] = position;
    }
    return score.withDevices(state, resources, picked, count, WHOLE_DEVICE);
  }

  /** Of the devices with room the one that strands least; of equal ones the fullest. */
  #scoreShare(state: WorkerState, score: Score, choice: { position: number } | null): number {
    const { resources } = this.request;
    const share = resources.device?.share ?? 0;
    const emptiest = this.request.placement.arrangement === 'spread';
    const { positions } = this.standing(state.kind);
    const picked = this.#picked;
    let best = Number.POSITIVE_INFINITY;
    let level = -1;
    for (let at = 0; at < positions.length; at++) {
      const position = positions[at] as number;
      const free = state.devices[position] as number;
      if (free < share || (free === level && state.kind.uniform)) continue;
      level = free;
      picked[0] = position;
      const value = emptiest ? -free : score.withDevices(state, resources, picked, 1, share);
      if (value >= best) continue;
      best = value;
      if (choice) choice.position = position;
    }
    return best;
  }
}

/** The part of the worker in use afterwards, of what it is asked for most of. */
function usedAfter(state: WorkerState, { resources }: PlacementRequest): number {
  const { cpuMillis, memoryBytes } = state.kind.info.resources;
  const part = (left: number, all: number): number => (all > 0 ? 1 - left / all : 0);
  const used = Math.max(
    part(state.cpuFree - resources.cpuMillis, cpuMillis),
    part(state.memoryFree - resources.memoryBytes, memoryBytes),
  );
  if (!resources.device) return used;
  const { count, share } = resources.device;
  const left = state.deviceMillisFree - count * share;
  // Devices first: CPU decides between workers with as many of them free.
  return part(left, state.kind.deviceMillis) + used / 1000;
}

function standingOf(kind: Kind, request: PlacementRequest): Standing {
  const { info, deviceGroups } = kind;
  const { device } = request.resources;
  const groups = device ? deviceGroups.filter((group) => matches(group.device, device)) : [];
  return {
    kind,
    unsuitable: unsuitable(info, request),
    tooSmall: tooSmall(info, request),
    positions: groups.flatMap(({ positions }) => positions).toSorted((a, b) => a - b),
    preference: preference(info, request),
    priceMicros: priceOf(info, request),
    locality: localityOf(info, request.placement.locality),
  };
}

function priceOf(info: PlannerWorker, { resources }: PlacementRequest): number {
  const { cpuMillis, device } = resources;
  const devices = device ? (device.count * device.share) / WHOLE_DEVICE : 0;
  return info.deviceHourMicros * devices + (info.cpuHourMicros * cpuMillis) / 1000;
}

function localityOf(info: PlannerWorker, locality: string): string | null {
  if (locality === '') return info.network;
  const value = attributeOf(info, locality);
  return value === undefined ? null : JSON.stringify([info.network, value]);
}
