/**
 * Workers of one kind on which the same is free are in the same state: what is scored is states,
 * each once. A state lives while a worker is in it; one that comes back is a new one.
 */
import { WHOLE_DEVICE } from './capacity.ts';
import type { Member } from './member.ts';
import type { Kind } from './kinds.ts';

export interface WorkerState {
  readonly key: string;
  readonly kind: Kind;
  readonly cpuFree: number;
  readonly memoryFree: number;
  readonly portsFree: number;
  /** Thousandths free by position; of a uniform kind in ascending order. */
  readonly devices: readonly number[];
  /** Their sum. */
  readonly deviceMillisFree: number;
  /** The most that is free on one of them, and how many are idle: to rule out most states fast. */
  readonly deviceMostFree: number;
  readonly idleDevices: number;
  /** Nothing is held here at all. */
  readonly idle: boolean;
  /** Its holder shares the worker with nobody. */
  readonly taken: boolean;
  /** Anti-affinity groups of those who hold something here. */
  readonly groups: readonly string[];
  readonly members: Member[];
  /** Cached by the score: see stranding.ts. */
  value: number;
  valuedBy: object | null;
  /** Its place among the living. */
  born: number;
  older: WorkerState | null;
  younger: WorkerState | null;
}

/** Living states in the order they were born, so that a reader looks only at those that are new. */
export class States {
  readonly #states = new Map<string, WorkerState>();
  #youngest: WorkerState | null = null;
  #born = 0;

  get size(): number {
    return this.#states.size;
  }

  /** To be given to `since` next time. */
  get born(): number {
    return this.#born;
  }

  all(): Iterable<WorkerState> {
    return this.#states.values();
  }

  /**
   * Calls with every living state born since then, the youngest first, until told to stop. Returns
   * the birth before which nothing was looked at.
   */
  since(born: number, each: (state: WorkerState) => boolean): number {
    for (let at = this.#youngest; at && at.born >= born; at = at.older) {
      if (!each(at)) return at.born;
    }
    return born;
  }

  enter(member: Member): void {
    const devices = devicesOf(member);
    const key = keyOf(member, devices);
    let state = this.#states.get(key);
    if (!state) {
      state = stateOf(key, member, devices);
      this.#states.set(key, state);
      this.#append(state);
    }
    member.state = state;
    member.at = state.members.push(member) - 1;
  }

  leave(member: Member): void {
    const { state, at } = member;
    if (!state) return;
    const last = state.members.pop() as Member;
    if (last !== member) {
      state.members[at] = last;
      last.at = at;
    }
    if (state.members.length === 0) {
      this.#states.delete(state.key);
      this.#unlink(state);
    }
    member.state = null;
  }

  #append(state: WorkerState): void {
    state.born = this.#born++;
    state.older = this.#youngest;
    if (this.#youngest) this.#youngest.younger = state;
    this.#youngest = state;
  }

  #unlink(state: WorkerState): void {
    const { older, younger } = state;
    if (older) older.younger = younger;
    if (younger) younger.older = older;
    else this.#youngest = older;
    // Else a heap that still knows it would keep all that died after it in memory.
    state.older = null;
    state.younger = null;
  }
}

function stateOf(key: string, member: Member, devices: number[]): WorkerState {
  const { kind, capacity, holdings } = member;
  let deviceMillisFree = 0;
  let deviceMostFree = 0;
  let idleDevices = 0;
  for (const free of devices) {
    deviceMillisFree += free;
    if (free > deviceMostFree) deviceMostFree = free;
    if (free === WHOLE_DEVICE) idleDevices++;
  }
  return {
    key,
    kind,
    cpuFree: capacity.cpuFree,
    memoryFree: capacity.memoryFree,
    portsFree: portsOf(member),
    devices,
    deviceMillisFree,
    deviceMostFree,
    idleDevices,
    idle: holdings.claims.size === 0,
    taken: holdings.exclusive > 0,
    groups: holdings.groups(),
    members: [],
    value: 0,
    valuedBy: null,
    born: 0,
    older: null,
    younger: null,
  };
}

function devicesOf({ kind, capacity }: Member): number[] {
  const devices = capacity.deviceFree.slice();
  if (kind.uniform) sortAscending(devices);
  return devices;
}

/** Beyond this many free ports workers are not told apart; no request may ask for as many. */
const PORTS_COUNTED = 1024;

function portsOf({ capacity }: Member): number {
  return Math.min(capacity.portsFree, PORTS_COUNTED);
}

/** By insertion: a handful of numbers, nearly sorted. */
function sortAscending(numbers: number[]): void {
  for (let at = 1; at < numbers.length; at++) {
    const value = numbers[at] as number;
    let to = at;
    for (; to > 0 && (numbers[to - 1] as number) > value; to--) {
      numbers[to] = numbers[to - 1] as number;
    }
    numbers[to] = value;
  }
}

function keyOf(member: Member, devices: number[]): string {
  const { kind, capacity, holdings } = member;
  let key = `${kind.id}|${capacity.cpuFree}|${capacity.memoryFree}|${portsOf(member)}`;
  for (const free of devices) key += `|${free}`;
  if (holdings.claims.size === 0) return key;
  key += holdings.exclusive > 0 ? '|x' : '|';
  for (const group of holdings.groups()) key += JSON.stringify(group);
  return key;
}
