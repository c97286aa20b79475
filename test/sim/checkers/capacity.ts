/**
 * I7: claims on a worker never exceed what it has, and on the machine itself no device is used
 * twice.
 */
import type { WorkerResources } from '../../../src/model/resources.ts';
import type { AttemptOrder } from '../../../src/protocol/agent.ts';
import type { ClaimRow } from '../../../src/store/database.ts';
import type { Commit, Mirror } from './mirror.ts';
import { must } from './violation.ts';

interface Held {
  cpuMillis: number;
  memoryBytes: number;
  /** Thousandths, by index. */
  devices: Map<number, number>;
  ports: Set<number>;
}

const WHOLE = 1000;

export class CapacityChecker {
  readonly #mirror: Mirror;
  readonly #held = new Map<string, Held>();
  readonly #used = new Map<string, Held>();
  readonly #orders = new Map<string, AttemptOrder>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  committed(commit: Commit): void {
    for (const claim of commit.freed) change(heldBy(this.#held, claim.worker), amounts(claim), -1);
    for (const { before, row } of commit.claims) if (!before) this.#hold(row);
    for (const { row } of commit.attempts) {
      const claimed = this.#mirror.claims.has(row.uid);
      const live = row.state !== 'ENDED';
      must(claimed === live, 'I7', () => `${row.uid} is ${row.state}, its claim ${claimed}`);
    }
    for (const { row } of commit.workers) {
      const held = row.ended_at_ms !== null && heldBy(this.#held, row.id).cpuMillis > 0;
      must(!held, 'I7', () => `worker ${row.id} has ended and is still claimed`);
    }
  }

  started(machine: string, order: AttemptOrder): void {
    this.#orders.set(order.uid, order);
    const used = heldBy(this.#used, machine);
    const indices = order.devices.map(({ index }) => index);
    change(used, { ...order, devices: indices }, 1);
    for (const index of indices) {
      const share = used.devices.get(index) ?? 0;
      must(
        share <= WHOLE,
        'I7',
        () => `${machine}: device ${index} is used twice, by ${order.uid}`,
      );
    }
  }

  ended(machine: string, uid: string): void {
    const order = this.#orders.get(uid);
    if (!order) return;
    this.#orders.delete(uid);
    const devices = order.devices.map(({ index }) => index);
    change(heldBy(this.#used, machine), { ...order, devices }, -1);
  }

  #hold(claim: ClaimRow): void {
    const { owner, worker } = claim;
    const row = this.#mirror.workers.get(worker);
    must(!!row && row.ended_at_ms === null, 'I7', () => `claim ${owner} on no worker`);
    const resources = JSON.parse(row?.resources ?? '{}') as WorkerResources;
    const held = heldBy(this.#held, worker);
    const asked = amounts(claim);
    for (const port of asked.ports) {
      must(!held.ports.has(port), 'I7', () => `port ${port} of ${worker} twice, by ${owner}`);
    }
    change(held, asked, 1);
    must(held.cpuMillis <= resources.cpuMillis, 'I7', () => `CPUs of ${worker} overbooked`);
    must(held.memoryBytes <= resources.memoryBytes, 'I7', () => `memory of ${worker} overbooked`);
    for (const index of asked.devices) {
      const known = resources.devices.some((device) => device.index === index);
      const share = held.devices.get(index) ?? 0;
      must(known && share <= WHOLE, 'I7', () => `device ${index} of ${worker} by ${owner}`);
    }
  }
}

type Amounts = Pick<AttemptOrder, 'cpuMillis' | 'memoryBytes' | 'share' | 'ports'> & {
  devices: number[];
};

function amounts(claim: ClaimRow): Amounts {
  return {
    cpuMillis: claim.cpu_millis,
    memoryBytes: claim.memory_bytes,
    devices: JSON.parse(claim.devices) as number[],
    share: claim.share,
    ports: JSON.parse(claim.ports) as number[],
  };
}

function heldBy(all: Map<string, Held>, name: string): Held {
  const known = all.get(name);
  if (known) return known;
  const held = { cpuMillis: 0, memoryBytes: 0, devices: new Map(), ports: new Set<number>() };
  all.set(name, held);
  return held;
}

function change(held: Held, by: Amounts, sign: 1 | -1): void {
  held.cpuMillis += sign * by.cpuMillis;
  held.memoryBytes += sign * by.memoryBytes;
  for (const index of by.devices) {
    held.devices.set(index, (held.devices.get(index) ?? 0) + sign * by.share);
  }
  for (const port of by.ports) {
    if (sign === 1) held.ports.add(port);
    else held.ports.delete(port);
  }
}
