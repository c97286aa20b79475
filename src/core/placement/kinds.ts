/** Workers that no request can tell apart share a kind, so that each is judged once. */
import { WHOLE_DEVICE } from './capacity.ts';
import type { Device } from '../../model/resources.ts';
import type { PlannerWorker } from './request.ts';

export interface Kind {
  readonly id: number;
  readonly key: string;
  /** Any worker of the kind, for what they have in common. */
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

  join(info: PlannerWorker): Kind {
    const key = this.#keyOf(info);
    let kind = this.#kinds.get(key);
    if (!kind)
      this.#kinds.set(key, (kind = kindOf(this.#freeIds.pop() ?? this.#minted++, key, info)));
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

  #keyOf(info: PlannerWorker): string {
    const { pool, network, open, terms, resources, deviceHourMicros, cpuHourMicros } = info;
    const { cpuMillis, memoryBytes, devices, portRange } = resources;
    const attributes: [string, string][] = this.#named.has('name') ? [['name', info.name]] : [];
    for (const [name, value] of Object.entries(info.attributes)) {
      if (this.#named.has(name)) attributes.push([name, value]);
    }
    attributes.sort(([a], [b]) => (a < b ? -1 : 1));
    return JSON.stringify([
      [pool, network, open, deviceHourMicros, cpuHourMicros],
      [terms.interruptibleOnly, terms.marketplace, terms.tenants],
      [cpuMillis, memoryBytes, portRange[1] - portRange[0], devices.map(deviceKey)],
      attributes,
    ]);
  }
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
