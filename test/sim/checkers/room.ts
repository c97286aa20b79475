/** What is free on workers, counted from claims: an independent idea of what fits where. */
import type { PoolPolicy } from '../../../src/core/placement/admission.ts';
import type { JobSpec } from '../../../src/model/job.ts';
import { unpackSpec } from '../../../src/model/spec.ts';
import { mayUse, RESOURCES, siteOf, type Site } from '../sites.ts';
import type { Mirror } from './mirror.ts';

interface Room {
  site: Site;
  cpuMillis: number;
  ports: number;
  /** Thousandths free of each device. */
  devices: number[];
  /** Whether somebody wants it for himself. */
  taken: boolean;
  claims: number;
  /** `tenant name` of those who want none of their kind beside them. */
  apart: Set<string>;
}

export class Rooms {
  readonly #pools: readonly PoolPolicy[];
  readonly #rooms = new Map<string, Room>();

  constructor(mirror: Mirror, pools: readonly PoolPolicy[]) {
    this.#pools = pools;
    for (const worker of mirror.workers.values()) {
      const site = siteOf(worker.machine);
      const open = worker.state === 'ONLINE' && worker.draining === 0;
      if (site && open && worker.ended_at_ms === null) this.#rooms.set(worker.id, emptyRoom(site));
    }
    for (const {
      owner,
      worker,
      devices,
      share,
      ports,
      cpu_millis: cpu,
    } of mirror.claims.values()) {
      const room = this.#rooms.get(worker);
      const job = mirror.jobs.get(owner.slice(0, owner.indexOf('.')));
      if (!room || !job) continue;
      room.cpuMillis -= cpu;
      room.ports -= (JSON.parse(ports) as number[]).length;
      for (const index of JSON.parse(devices) as number[]) {
        room.devices[index] = (room.devices[index] ?? 0) - share;
      }
      const { placement } = unpackSpec(job.spec);
      room.taken ||= placement.exclusive;
      room.claims++;
      if (placement.antiAffinity !== '') room.apart.add(`${job.tenant} ${placement.antiAffinity}`);
    }
  }

  /** Whether all members (one, but for a gang) have a place now, in one locality. */
  fits(spec: JobSpec, tenant: string): boolean {
    const members = spec.shape.kind === 'gang' ? spec.shape.size : 1;
    const usable = [...this.#rooms.values()].filter((room) => this.#suits(room, spec, tenant));
    const { locality } = spec.placement;
    const groups = Map.groupBy(usable, ({ site }) =>
      locality === '' || members === 1 ? 'all' : site.attributes[locality],
    );
    for (const [key, group] of groups) {
      if (key === undefined) continue;
      let placed = 0;
      for (const room of group) placed += countIn(room, spec, members - placed);
      if (placed >= members) return true;
    }
    return false;
  }

  #suits(room: Room, spec: JobSpec, tenant: string): boolean {
    const { exclusive, antiAffinity } = spec.placement;
    if (room.taken || (exclusive && room.claims > 0)) return false;
    if (antiAffinity !== '' && room.apart.has(`${tenant} ${antiAffinity}`)) return false;
    return mayUse(room.site, this.#pools, spec, tenant);
  }
}

function emptyRoom(site: Site): Room {
  return {
    site,
    cpuMillis: RESOURCES.cpuMillis,
    ports: RESOURCES.portRange[1] - RESOURCES.portRange[0] + 1,
    devices: RESOURCES.devices.map(() => 1000),
    ...{ taken: false, claims: 0, apart: new Set<string>() },
  };
}

/** How many members it could take, at most so many. */
function countIn(room: Room, { resources, placement, shape }: JobSpec, most: number): number {
  const devices = [...room.devices];
  let { cpuMillis, ports } = room;
  const alone = placement.exclusive || placement.antiAffinity !== '';
  const ports1 = shape.kind === 'gang' ? Math.max(1, resources.ports) : resources.ports;
  for (let count = 0; ; count++) {
    if (count === most || (alone && count === 1)) return count;
    cpuMillis -= resources.cpuMillis;
    ports -= ports1;
    if (cpuMillis < 0 || ports < 0 || !takeDevices(devices, resources.device)) return count;
  }
}

function takeDevices(free: number[], device: JobSpec['resources']['device']): boolean {
  if (!device) return true;
  const { share, count } = device;
  const positions = free
    .map((left, at) => ({ left, at }))
    .filter(({ left }) => left >= share)
    .toSorted((a, b) => a.left - b.left)
    .slice(0, count);
  for (const { at } of positions) free[at] = (free[at] ?? 0) - share;
  return positions.length === count;
}
