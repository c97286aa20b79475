/**
 * Workers of one kind on which the same is free are in the same state: what is scored is states,
 * each once. A state lives while a worker is in it; one that comes back is a new one.
 */
import type { Member } from './member.ts';
import type { Kind } from './kinds.ts';

export interface WorkerState {
  readonly kind: Kind;
  readonly cpuFree: number;
  readonly memoryFree: number;
  readonly portsFree: number;
  /** Thousandths free by position; of a uniform kind in ascending order. */
  readonly devices: readonly number[];
  /** Their sum. */
  readonly deviceMillisFree: number;
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
}

/** Later born states are remembered so that a reader hears only of those since it last asked. */
const BIRTHS_KEPT_MIN = 4096;
const BIRTHS_KEPT_PER_STATE = 2;

export class States {
  readonly #states = new Map<string, WorkerState>();
  #births: WorkerState[] = [];
  /** How many births came before the first of `#births`. */
  #forgotten = 0;

  get size(): number {
    return this.#states.size;
  }

  /** To be given to `since` next time. */
  get born(): number {
    return this.#forgotten + this.#births.length;
  }

  all(): Iterable<WorkerState> {
    return this.#states.values();
  }

  /** Calls with states born after `cursor`, also dead ones; false: too long ago, see `all`. */
  since(cursor: number, each: (state: WorkerState) => void): boolean {
    if (cursor < this.#forgotten) return false;
    const births = this.#births;
    for (let at = cursor - this.#forgotten; at < births.length; at++) {
      each(births[at] as WorkerState);
    }
    return true;
  }

  enter(member: Member): void {
    const devices = devicesOf(member);
    const key = keyOf(member, devices);
    let state = this.#states.get(key);
    if (!state) {
      state = stateOf(member, devices);
      this.#states.set(key, state);
      this.#remember(state);
    }
    member.state = state;
    member.stateKey = key;
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
    if (state.members.length === 0) this.#states.delete(member.stateKey);
    member.state = null;
  }

  #remember(state: WorkerState): void {
    this.#births.push(state);
    const kept = Math.max(BIRTHS_KEPT_MIN, BIRTHS_KEPT_PER_STATE * this.#states.size);
    if (this.#births.length <= 2 * kept) return;
    this.#forgotten += this.#births.length - kept;
    this.#births = this.#births.slice(-kept);
  }
}

function stateOf(member: Member, devices: number[]): WorkerState {
  const { kind, capacity, holdings } = member;
  let deviceMillisFree = 0;
  for (const free of devices) deviceMillisFree += free;
  return {
    kind,
    cpuFree: capacity.cpuFree,
    memoryFree: capacity.memoryFree,
    portsFree: portsOf(member),
    devices,
    deviceMillisFree,
    idle: holdings.claims.size === 0,
    taken: holdings.exclusive > 0,
    groups: holdings.groups(),
    members: [],
    value: 0,
    valuedBy: null,
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
