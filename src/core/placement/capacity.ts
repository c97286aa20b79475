/**
 * Free capacity of one worker: what it has less what claims hold. The only place that does this
 * sum.
 */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid, WorkerId } from '../../model/ids.ts';
import type {
  Device,
  DeviceRequest,
  ResourceRequest,
  WorkerResources,
} from '../../model/resources.ts';

export const WHOLE_DEVICE = 1000;

/** Why a request does not fit, in the order it is checked. */
export const MISFITS = ['devices', 'cpus', 'memory', 'ports'] as const;
export type Misfit = (typeof MISFITS)[number];

export type Fit =
  | { fits: true; devices: number[]; ports: number[] }
  | { fits: false; short: Misfit };

export class Capacity {
  readonly resources: WorkerResources;
  cpuFree: number;
  memoryFree: number;
  /** Thousandths free of each device, by position in `resources.devices`. */
  readonly deviceFree: number[];
  readonly portsTaken = new Set<number>();
  /** A nominated claim may lie on a port that its victim still has: how many more hold it. */
  #portsAgain: Map<number, number> | null = null;
  /** How many of the port range nobody holds. */
  portsFree: number;
  #nextPort: number;

  constructor(resources: WorkerResources) {
    this.resources = resources;
    this.cpuFree = resources.cpuMillis;
    this.memoryFree = resources.memoryBytes;
    this.deviceFree = resources.devices.map(() => WHOLE_DEVICE);
    this.#nextPort = resources.portRange[0];
    this.portsFree = resources.portRange[1] - resources.portRange[0] + 1;
  }

  /**
   * What a claim for this request would hold, or what is short. Changes nothing but the port
   * cursor.
   */
  fit(request: ResourceRequest): Fit {
    const devices = request.device ? this.#pickDevices(request.device) : [];
    if (!devices) return { fits: false, short: 'devices' };
    if (request.cpuMillis > this.cpuFree) return { fits: false, short: 'cpus' };
    if (request.memoryBytes > this.memoryFree) return { fits: false, short: 'memory' };
    const ports = request.ports > 0 ? this.pickPorts(request.ports) : [];
    if (!ports) return { fits: false, short: 'ports' };
    return { fits: true, devices, ports };
  }

  /** Whether exactly this claim can be held: the guard of an assignment. */
  admits(claim: Claim): boolean {
    if (claim.cpuMillis > this.cpuFree || claim.memoryBytes > this.memoryFree) return false;
    for (const index of claim.devices) {
      if ((this.deviceFree[this.#position(index)] ?? 0) < claim.share) return false;
    }
    return claim.ports.every((port) => !this.portsTaken.has(port));
  }

  take(claim: Claim): void {
    this.#change(claim, 1);
    for (const port of claim.ports) {
      if (this.portsTaken.has(port)) this.#holdAgain(port, 1);
      else {
        this.portsTaken.add(port);
        if (this.#inRange(port)) this.portsFree--;
      }
    }
  }

  give(claim: Claim): void {
    this.#change(claim, -1);
    for (const port of claim.ports) {
      if (this.#portsAgain?.has(port)) this.#holdAgain(port, -1);
      else if (this.portsTaken.delete(port) && this.#inRange(port)) this.portsFree++;
    }
  }

  devicesFree(): number {
    let free = 0;
    for (const share of this.deviceFree) if (share === WHOLE_DEVICE) free++;
    return free;
  }

  #change(claim: Claim, sign: 1 | -1): void {
    this.cpuFree -= sign * claim.cpuMillis;
    this.memoryFree -= sign * claim.memoryBytes;
    for (const index of claim.devices) {
      const position = this.#position(index);
      const free = this.deviceFree[position];
      if (free !== undefined) this.deviceFree[position] = free - sign * claim.share;
    }
  }

  #holdAgain(port: number, change: 1 | -1): void {
    // Hardly any worker has some: a large fleet is lighter without a map on each.
    const held = (this.#portsAgain ??= new Map<number, number>());
    const more = (held.get(port) ?? 0) + change;
    if (more > 0) held.set(port, more);
    else held.delete(port);
  }

  #inRange(port: number): boolean {
    const [first, last] = this.resources.portRange;
    return port >= first && port <= last;
  }

  #position(index: number): number {
    // Nearly always a device's index is its place.
    if (this.resources.devices[index]?.index === index) return index;
    return this.resources.devices.findIndex((device) => device.index === index);
  }

  /** Whole devices: the first free ones. A share: the fullest device that still has room. */
  #pickDevices(request: DeviceRequest): number[] | null {
    const picked: number[] = [];
    let best = -1;
    for (const [position, device] of this.resources.devices.entries()) {
      if (!matches(device, request)) continue;
      const free = this.deviceFree[position] ?? 0;
      if (free < request.share) continue;
      if (request.share === WHOLE_DEVICE) {
        picked.push(device.index);
        if (picked.length === request.count) return picked;
      } else if (best < 0 || free < (this.deviceFree[best] ?? 0)) {
        best = position;
      }
    }
    const shared = this.resources.devices[best];
    return shared && request.share < WHOLE_DEVICE ? [shared.index] : null;
  }

  /** Goes round the range, so that a port just freed is not the next one given. */
  pickPorts(count: number): number[] | null {
    const [first, last] = this.resources.portRange;
    const picked: number[] = [];
    let port = this.#nextPort;
    for (let tried = first; tried <= last && picked.length < count; tried++) {
      if (!this.portsTaken.has(port)) picked.push(port);
      port = port >= last ? first : port + 1;
    }
    if (picked.length < count) return null;
    this.#nextPort = port;
    return picked;
  }
}

export function matches(device: Device, request: DeviceRequest): boolean {
  if (device.kind !== request.kind || device.memoryBytes < request.memoryBytes) return false;
  if (request.models.length === 0) return true;
  const model = device.model.toLowerCase();
  return request.models.some((wanted) => model.includes(wanted.toLowerCase()));
}

export function claimOf(
  owner: AttemptUid,
  worker: WorkerId,
  request: ResourceRequest,
  fit: { devices: number[]; ports: number[] },
): Claim {
  return {
    owner,
    worker,
    cpuMillis: request.cpuMillis,
    memoryBytes: request.memoryBytes,
    devices: fit.devices,
    share: request.device?.share ?? WHOLE_DEVICE,
    ports: fit.ports,
    state: 'HELD',
  };
}
