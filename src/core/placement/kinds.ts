/** Workers that no request can tell apart share a kind, so that each is judged once. */
import { WHOLE_DEVICE } from './capacity.ts';
import type { Device } from '../../model/resources.ts';
import type { PlannerWorker } from './request.ts';

export interface Kind {
  readonly id: number;
  readonly key: string;
  /** What its workers have in common; the id is any one's. */
  info: PlannerWorker;
  /** Devices that differ in nothing but their index. */
  deviceGroups: DeviceGroup[];
  /** All devices are alike, so the order of what is free on them says nothing. */
  uniform: boolean;
  deviceMillis: number;
}

export interface DeviceGroup {
  device: Device;
  /** The same for the same device on workers of another kind. */
  key: string;
  /** Positions in `resources.devices`. */
  positions: number[];
}

/**
 * Only attributes that some request has named tell workers apart: a fleet in which each worker has
 * a label of its own is still a few kinds.
 */
export class Kinds {
  readonly #kinds = new Map<string, Kind>();
  readonly #workers = new Map<Kind, number>();
  readonly #named = new Set<string>();
  /** Ids are places in tables of others, so they are given again. */
  readonly #freeIds: number[] = [];
  #minted = 0;

  /** True when it was not told apart before: workers that have it must leave and join again. */
  name(attribute: string): boolean {
    if (ALWAYS_TOLD_APART.has(attribute) || this.#named.has(attribute)) return false;
    this.#named.add(attribute);
    return true;
  }

  join(worker: PlannerWorker): Kind {
    const info = this.#common(worker);
    const key = keyOf(info);
    let kind = this.#kinds.get(key);
    if (!kind) {
      kind = kindOf(this.#freeIds.pop() ?? this.#minted++, key, info);
      this.#kinds.set(key, kind);
    }
    this.#workers.set(kind, (this.#workers.get(kind) ?? 0) + 1);
    return kind;
  }

  leave(kind: Kind): void {
    const left = (this.#workers.get(kind) ?? 0) - 1;
    if (left > 0) {
      this.#workers.set(kind, left);
      return;
    }
    this.#workers.delete(kind);
    this.#kinds.delete(kind.key);
    this.#freeIds.push(kind.id);
  }

  /** What it is to requests: without the attributes that none has named. */
  #common(info: PlannerWorker): PlannerWorker {
    const attributes: Record<string, string> = {};
    for (const name of Object.keys(info.attributes).toSorted()) {
      if (this.#named.has(name)) attributes[name] = info.attributes[name] as string;
    }
    return { ...info, attributes, name: this.#named.has('name') ? info.name : '' };
  }
}

function keyOf(info: PlannerWorker): string {
  const { name, pool, network, open, terms, lasts, resources, attributes } = info;
  const { cpuMillis, memoryBytes, devices, portRange } = resources;
  return JSON.stringify([
    [name, pool, network, open, info.deviceHourMicros, info.cpuHourMicros],
    [terms.interruptibleOnly, terms.marketplace, terms.tenants, terms.users, lasts],
    [cpuMillis, memoryBytes, portRange[1] - portRange[0], devices.map(deviceKey)],
    attributes,
  ]);
}

const ALWAYS_TOLD_APART: ReadonlySet<string> = new Set(['', 'pool', 'network']);

function kindOf(id: number, key: string, info: PlannerWorker): Kind {
  const groups = new Map<string, DeviceGroup>();
  for (const [position, device] of info.resources.devices.entries()) {
    const name = deviceKey(device);
    const group = groups.get(name);
    if (group) group.positions.push(position);
    else groups.set(name, { device, key: name, positions: [position] });
  }
  return {
    id,
    key,
    info,
    deviceGroups: [...groups.values()],
    uniform: groups.size <= 1,
    deviceMillis: WHOLE_DEVICE * info.resources.devices.length,
  };
}

function deviceKey({ kind, model, memoryBytes }: Device): string {
  return `${kind}|${memoryBytes}|${model}`;
}
