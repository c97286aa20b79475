/** How much a placement strands: the less, the better. */
import type { ResourceRequest } from '../../model/resources.ts';
import { WHOLE_DEVICE, matches } from './capacity.ts';
import type { DemandMix } from './demand.ts';
import type { DeviceGroup, Kind } from './kinds.ts';
import { cpuLevel, cpuStepOf, idleAt, sharedAt, strandingTables } from './stranding.ts';
import type { StrandingTables } from './stranding.ts';
import type { WorkerState } from './states.ts';

/** Of two equal ones the fuller worker: devices stranded that an idle device more is worth. */
const FULLER_WORKER = 0.015;
/** And then the one with less CPU left, as a part of all. */
const FULLER_CPU = 0.0001;

/**
 * What idle devices of one worker are worth together, beyond what the mix says: large work is rare,
 * and must find a worker when it comes. By the square of their number, over what the worker has.
 */
const TOGETHER = 0.5 / 8;

/** Tables are made for at least so many devices, as most workers have at most. */
const DEVICES_EXPECTED = 8;

interface GroupTables {
  positions: readonly number[];
  tables: StrandingTables;
}

/** Values of one mix. Tables are made when a worker that needs them is first looked at. */
export class Score {
  readonly mix: DemandMix;
  /** By device, and by the part of the mix that can use it. */
  readonly #byDevice = new Map<string, StrandingTables>();
  readonly #tables = new Map<string, StrandingTables>();
  readonly #groups = new Map<Kind, GroupTables[]>();
  /** Written over by each look and never cut: an array that is emptied leaves garbage. */
  readonly #after: number[] = [];
  readonly #cpuPerByte: number | null;

  constructor(mix: DemandMix) {
    this.mix = mix;
    this.#cpuPerByte = mix.cpuPerByte;
  }

  /** For a task that changes nothing but CPU. */
  withoutDevices(state: WorkerState, resources: ResourceRequest): number {
    return this.#score(state, state.devices, resources);
  }

  /** For `take` thousandths of each of the devices at the first `count` of these positions. */
  withDevices(
    state: WorkerState,
    resources: ResourceRequest,
    positions: readonly number[],
    count: number,
    take: number,
  ): number {
    const after = this.#after;
    const { devices } = state;
    for (let at = 0; at < devices.length; at++) after[at] = devices[at] as number;
    for (let at = 0; at < count; at++) after[positions[at] as number]! -= take;
    return this.#score(state, after, resources);
  }

  #score(state: WorkerState, devices: readonly number[], wanted: ResourceRequest): number {
    const { kind, cpuFree, memoryFree } = state;
    const cpuLeft = cpuFree - wanted.cpuMillis;
    const fuller =
      (FULLER_WORKER * state.deviceMillisFree) / WHOLE_DEVICE +
      (FULLER_CPU * cpuLeft) / kind.info.resources.cpuMillis;
    if (state.devices.length === 0) return fuller;
    if (state.valuedBy !== this) {
      state.value = this.#value(kind, state.devices, cpuFree, memoryFree);
      state.valuedBy = this;
    }
    const after = this.#value(kind, devices, cpuLeft, memoryFree - wanted.memoryBytes);
    return after - state.value + fuller;
  }

  /** Devices expected to be stranded when this much is free. */
  #value(kind: Kind, devices: readonly number[], cpuFree: number, memoryFree: number): number {
    // Where memory is what runs out, CPU beyond it is of no use.
    const most = this.#cpuPerByte === null ? cpuFree : memoryFree * this.#cpuPerByte;
    const cpuUsable = most < cpuFree ? most : cpuFree;
    let value = 0;
    const groups = this.#groupsOf(kind);
    for (let group = 0; group < groups.length; group++) {
      const { positions, tables } = groups[group] as GroupTables;
      const { cpuStep, shared, idle, cpuPerMilli } = tables;
      const cpu = cpuLevel(cpuUsable, cpuStep);
      let idleDevices = 0;
      let inUse = 0;
      for (let at = 0; at < positions.length; at++) {
        const free = devices[positions[at] as number] as number;
        if (free === WHOLE_DEVICE) idleDevices++;
        else if (free > 0) {
          value += shared[sharedAt(free, cpu)] as number;
          inUse += free;
        }
      }
      if (idleDevices === 0) continue;
      const forIdle = cpuLevel(cpuUsable - inUse * cpuPerMilli, cpuStep);
      value += idle[idleAt(idleDevices, forIdle)] as number;
      value -= (TOGETHER * idleDevices * idleDevices) / positions.length;
    }
    return value;
  }

  #groupsOf(kind: Kind): GroupTables[] {
    let groups = this.#groups.get(kind);
    if (!groups) {
      const { cpuMillis } = kind.info.resources;
      groups = kind.deviceGroups.map((group) => ({
        positions: group.positions,
        tables: this.#tablesOf(group, cpuStepOf(cpuMillis)),
      }));
      this.#groups.set(kind, groups);
    }
    return groups;
  }

  #tablesOf(group: DeviceGroup, cpuStep: number): StrandingTables {
    const key = `${cpuStep}|${group.key}`;
    const known = this.#byDevice.get(key);
    if (known && known.devices >= group.positions.length) return known;
    const tables = this.#tablesFor(group, cpuStep);
    this.#byDevice.set(key, tables);
    return tables;
  }

  /** Devices that the same work of the mix can use have the same tables. */
  #tablesFor(group: DeviceGroup, cpuStep: number): StrandingTables {
    const { mix } = this;
    const usable = mix.classes.filter(({ of }) => matches(group.device, of.device));
    const all = usable.length === mix.classes.length;
    const key = `${cpuStep}|${all ? 'all' : usable.map(({ of }) => of.key).join()}`;
    let tables = this.#tables.get(key);
    const devices = Math.max(group.positions.length, DEVICES_EXPECTED);
    if (!tables || tables.devices < devices) {
      tables = strandingTables(mix, usable, cpuStep, devices);
      this.#tables.set(key, tables);
    }
    return tables;
  }
}
