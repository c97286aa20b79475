/**
 * I6: no machine outlives its reason. Before a provider is asked for one, the intent is on disk;
 * and each that exists is that of exactly one instance which has not ended, or its end was asked
 * for, but for five minutes at most. Work lies only on machines whose instance has joined.
 */
import type { LaunchBatch } from '../../../src/providers/contract.ts';
import type { FakeAccount } from '../../../src/providers/fake/account.ts';
import type { FakeMachine } from '../../../src/providers/fake/machine.ts';
import type { InstanceRow } from '../../../src/store/machineRows.ts';
import type { Commit, Mirror } from './mirror.ts';
import { must } from './violation.ts';

const LONGEST_UNOWNED_MS = 5 * 60_000;
const WANTED = new Set(['INTENDED', 'REQUESTED', 'BOOTING', 'PROBING', 'JOINED', 'DRAINING']);
const AT_WORK = new Set(['JOINED', 'DRAINING', 'DESTROYING']);

interface Pool {
  name: string;
  /** Its machines carry the label of their intent. */
  labels: boolean;
}

export class OwnedChecker {
  readonly #mirror: Mirror;
  /** By machine: for how long it has been nobody's. */
  readonly #unownedMs = new Map<FakeMachine, number>();
  readonly #lookedAtMs = new Map<FakeAccount, number>();
  readonly #left = new Set<FakeMachine>();
  /** Those of nobody whose end was asked for. */
  ended = 0;

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  asked({ intents }: LaunchBatch): void {
    for (const { label } of intents) {
      const known = this.#mirror.instances.has(label);
      must(known, 'I6', () => `a provider is asked for ${label}, which is not on disk`);
    }
  }

  /** Called every few moments; while nobody is `able` to do anything, no time counts. */
  look(account: FakeAccount, pool: Pool, able: boolean, nowMs: number): void {
    const { labels } = pool;
    const owned = this.#owned(account, pool);
    const passedMs = nowMs - (this.#lookedAtMs.get(account) ?? nowMs);
    this.#lookedAtMs.set(account, nowMs);
    for (const machine of account.existing()) {
      if (machine.leaving && labels) this.#isLeaving(machine, owned.has(machine));
      const forMs = this.#unownedMs.get(machine);
      if (owned.has(machine) || machine.leaving) {
        if (forMs !== undefined && machine.leaving) this.ended++;
        this.#unownedMs.delete(machine);
      } else this.#isUnowned(machine, (forMs ?? 0) + (able ? passedMs : 0));
    }
  }

  committed({ attempts, instances }: Commit): void {
    const changed = new Set(instances.map(({ row }) => row.id));
    for (const { before, row } of attempts) {
      const worker = before ? undefined : this.#mirror.workers.get(row.worker);
      // One batch may hold the assignment and then what became of the instance.
      if (!worker?.instance || changed.has(worker.instance)) continue;
      const state = this.#mirror.instances.get(worker.instance)?.state ?? 'absent';
      must(AT_WORK.has(state), 'I6', () => `${row.uid} began on ${worker.instance}: ${state}`);
    }
  }

  /** Nobody ends a machine whose instance is wanted, also not as one that nobody knows. */
  #isLeaving(machine: FakeMachine, isOwned: boolean): void {
    if (this.#left.has(machine)) return;
    this.#left.add(machine);
    const { handle, order } = machine;
    const state = this.#mirror.instances.get(order.label)?.state ?? 'absent';
    const wanted = isOwned && WANTED.has(state);
    must(!wanted, 'I6', () => `${handle} is ended, but its instance ${order.label} is ${state}`);
  }

  #isUnowned(machine: FakeMachine, forMs: number): void {
    this.#unownedMs.set(machine, forMs);
    const { handle, order, phase } = machine;
    must(forMs <= LONGEST_UNOWNED_MS, 'I6', () => {
      const told = this.#mirror.instances.get(order.label)?.state ?? 'absent';
      return `${handle} (${phase}) is nobody's for ${forMs / 1000} s; ${order.label} is ${told}`;
    });
  }

  /** Each instance owns one machine: the one it knows, else the first with its label. */
  #owned(account: FakeAccount, { name, labels }: Pool): Set<FakeMachine> {
    const owned = new Set<FakeMachine>();
    const existing = account.existing();
    const waiting: InstanceRow[] = [];
    for (const row of this.#mirror.instances.values()) {
      if (row.ended_at_ms !== null || row.pool !== name) continue;
      const machine =
        existing.find(({ handle }) => handle === row.handle) ??
        (labels ? existing.find(({ order }) => order.label === row.id) : undefined);
      if (machine) owned.add(machine);
      else if (row.handle === '') waiting.push(row);
    }
    if (labels) return owned;
    for (const machine of existing) {
      if (!owned.has(machine) && waiting.shift()) owned.add(machine);
    }
    return owned;
  }
}
