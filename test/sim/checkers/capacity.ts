/**
 * I7: claims on a worker never exceed what it has, nor do those it will have when what is leaving
 * has gone; and on the machine itself no device is used twice.
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
  /** How often each is taken. */
  ports: Map<number, number>;
}

const WHOLE = 1000;

export class CapacityChecker {
  readonly #mirror: Mirror;
  /** What claims hold now: HELD and RELEASING. */
  readonly #held = new Map<string, Held>();
  /** What will be held when everything that is leaving has gone: HELD and NOMINATED. */
  readonly #promised = new Map<string, Held>();
  readonly #used = new Map<string, Held>();
  readonly #orders = new Map<string, AttemptOrder>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  committed(commit: Commit): void {
    const touched = new Set<string>();
    for (const claim of commit.freed) this.#count(claim, -1);
    for (const { before, row } of commit.claims) {
      if (before) this.#count(before, -1);
      this.#count(row, 1);
      touched.add(row.worker);
    }
    for (const worker of touched) this.#check(worker);
    for (const { row } of commit.attempts) {
      const state = this.#mirror.claims.get(row.uid)?.state ?? 'none';
      const wanted =
        row.state === 'ENDED' ? 'none' : row.state === 'STOPPING' ? 'RELEASING' : 'HELD';
      must(state === wanted, 'I7', () => `${row.uid} is ${row.state}, its claim ${state}`);
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

  #count(claim: ClaimRow, sign: 1 | -1): void {
    const asked = amounts(claim);
    if (claim.state !== 'NOMINATED') change(heldBy(this.#held, claim.worker), asked, sign);
    if (claim.state !== 'RELEASING') change(heldBy(this.#promised, claim.worker), asked, sign);
  }

  #check(worker: string): void {
    const row = this.#mirror.workers.get(worker);
    must(!!row && row.ended_at_ms === null, 'I7', () => `a claim on ${worker}, which is not there`);
    const resources = JSON.parse(row?.resources ?? '{}') as WorkerResources;
    for (const [how, all] of [
      ['held', this.#held] as const,
      ['promised', this.#promised] as const,
    ]) {
      const sums = heldBy(all, worker);
      const fits = sums.cpuMillis <= resources.cpuMillis;
      must(fits, 'I7', () => `CPUs of ${worker} are ${how} twice`);
      const remembered = sums.memoryBytes <= resources.memoryBytes;
      must(remembered, 'I7', () => `memory of ${worker} is ${how} twice`);
      for (const [index, share] of sums.devices) {
        const known = share === 0 || resources.devices.some((device) => device.index === index);
        must(known && share <= WHOLE, 'I7', () => `device ${index} of ${worker} is ${how} twice`);
      }
      for (const [port, times] of sums.ports) {
        must(times <= 1, 'I7', () => `port ${port} of ${worker} is ${how} twice`);
      }
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
  const held = { cpuMillis: 0, memoryBytes: 0, devices: new Map(), ports: new Map() };
  all.set(name, held);
  return held;
}

function change(held: Held, by: Amounts, sign: 1 | -1): void {
  held.cpuMillis += sign * by.cpuMillis;
  held.memoryBytes += sign * by.memoryBytes;
  for (const index of by.devices) {
    held.devices.set(index, (held.devices.get(index) ?? 0) + sign * by.share);
  }
  for (const port of by.ports) held.ports.set(port, (held.ports.get(port) ?? 0) + sign);
}
