/** One checker per invariant. Each is fed by what becomes durable or visible and throws at a violation. */
import { TASK_MOVES } from '../../src/core/lifecycle/task.ts';
import { parseAttemptUid } from '../../src/model/ids.ts';
import { unpackSpec } from '../../src/model/spec.ts';
import type { TaskState } from '../../src/model/task.ts';
import type { WriteBatch } from '../../src/store/contract.ts';
import { TABLES, type TableName } from '../../src/store/tables.ts';
import type { Machine } from './machine.ts';

export class Violation extends Error {
  readonly invariant: string;
  constructor(invariant: string, detail: string) {
    super(`${invariant}: ${detail}`);
    this.name = 'Violation';
    this.invariant = invariant;
  }
}

type Row = Record<string, string | number | null>;

interface TaskRecord {
  state: TaskState;
  version: number;
  attempts: number;
}

const ENDED = new Set(['SUCCEEDED', 'FAILED', 'CANCELLED', 'UNSCHEDULABLE']);

/** Everything durable, rebuilt from batches as they are committed. */
export class Checker {
  readonly #machines: Machine[];
  readonly #exits: Map<string, number>;
  readonly jobs = new Map<string, Row>();
  readonly tasks = new Map<string, TaskRecord>();
  readonly #attempts = new Map<string, Row>();
  readonly #attemptsOfTask = new Map<string, string[]>();
  readonly #claims = new Map<string, Row>();
  readonly #workers = new Map<string, Row>();
  readonly #acked = new Set<string>();
  readonly #keys = new Map<string, string>();
  readonly #cancelled = new Map<string, number>();
  #epoch = 0;
  #seq = 0;

  constructor(machines: Machine[], exits: Map<string, number>) {
    this.#machines = machines;
    this.#exits = exits;
  }

  // I12: epochs rise, and event numbers never go back or leave a gap.
  booted(epoch: number): void {
    if (epoch <= this.#epoch) throw new Violation('I12', `epoch ${epoch} after ${this.#epoch}`);
    this.#epoch = epoch;
  }

  // I2 and I3: what was answered is on disk at that moment, and a key always names the same job.
  submitted(key: string, id: string): void {
    if (!this.jobs.has(id)) throw new Violation('I2', `job ${id} was acknowledged, not committed`);
    const before = this.#keys.get(key);
    if (before !== undefined && before !== id) {
      throw new Violation('I3', `key ${key} gave ${before}, then ${id}`);
    }
    this.#keys.set(key, id);
    this.#acked.add(id);
  }

  // I13: no attempt begins after a cancel was acknowledged.
  cancelled(id: string): void {
    this.#cancelled.set(id, this.#attemptCount(id));
  }

  committed(batch: WriteBatch): void {
    if (batch.epoch !== this.#epoch) {
      throw new Violation('I12', `epoch ${batch.epoch} wrote in epoch ${this.#epoch}`);
    }
    for (const row of rowsOf(batch, 'events')) {
      const seq = Number(row['seq']);
      if (seq !== this.#seq + 1) throw new Violation('I12', `event ${seq} after ${this.#seq}`);
      this.#seq = seq;
    }
    for (const row of rowsOf(batch, 'jobs')) this.#job(row);
    for (const row of rowsOf(batch, 'workers')) this.#merge(this.#workers, row['id'], row);
    for (const row of rowsOf(batch, 'attempts')) this.#attempt(row);
    for (const row of rowsOf(batch, 'claims')) this.#merge(this.#claims, row['owner'], row);
    for (const owner of batch.tables.claims?.deletes ?? []) this.#claims.delete(String(owner));
    for (const row of rowsOf(batch, 'tasks')) this.#task(row);
    this.#checkClaims();
    this.#checkGangs(batch);
    this.#checkCancelled();
  }

  /** After every event: the truth on the machines. */
  machines(): void {
    const running = new Map<string, string>();
    for (const machine of this.#machines) {
      const devices = new Map<number, string>();
      for (const { uid, order } of machine.live()) {
        if (!order) continue;
        const other = running.get(order.task);
        if (other) throw new Violation('I1', `task ${order.task} runs twice: ${other}, ${uid}`);
        running.set(order.task, uid);
        for (const { index } of order.devices) {
          const holder = devices.get(index);
          if (holder) {
            throw new Violation('I7', `${machine.name} device ${index}: ${holder} and ${uid}`);
          }
          devices.set(index, uid);
        }
      }
    }
  }

  /** How much of what was accepted has not ended, or still holds something. */
  pending(): number {
    let pending = this.#claims.size;
    for (const id of this.#acked) if (this.jobs.get(id)?.['ended_at_ms'] === null) pending++;
    return pending;
  }

  /** L1, at the end: everything accepted has ended. */
  allEnded(): void {
    for (const id of this.#acked) {
      const job = this.jobs.get(id);
      if (!job) throw new Violation('I2', `job ${id} is gone`);
      if (job['ended_at_ms'] === null) throw new Violation('L1', `job ${id} has not ended`);
    }
    if (this.#claims.size > 0) throw new Violation('L1', `${this.#claims.size} claims are left`);
  }

  #job(row: Row): void {
    const known = this.jobs.get(String(row['id']));
    if (known && known['ended_at_ms'] !== null && row['ended_at_ms'] === null) {
      throw new Violation('I4', `job ${row['id']} came back to life`);
    }
    this.#merge(this.jobs, row['id'], row);
  }

  // I1: one attempt number, one uid; a new one only when the one before has ended.
  #attempt(row: Row): void {
    const key = `${row['job']}.${row['task_index']}.${row['n']}`;
    const known = this.#attempts.get(key);
    if (known && row['uid'] !== undefined && known['uid'] !== row['uid']) {
      throw new Violation('I1', `attempt ${key} has two uids`);
    }
    if (known?.['state'] === 'ENDED' && row['state'] !== 'ENDED') {
      throw new Violation('I4', `attempt ${key} came back to life`);
    }
    this.#merge(this.#attempts, key, row);
    if (known) return;
    const task = `${row['job']}.${row['task_index']}`;
    const all = this.#attemptsOfTask.get(task) ?? [];
    if (Number(row['n']) !== all.length + 1) {
      throw new Violation('I1', `attempt ${key} is not number ${all.length + 1}`);
    }
    for (const other of all) {
      if (this.#attempts.get(other)?.['state'] !== 'ENDED') {
        throw new Violation('I1', `attempt ${key} began while ${other} lives`);
      }
    }
    all.push(key);
    this.#attemptsOfTask.set(task, all);
  }

  // I4: only moves of the table (a batch may hold several); I11: a success really happened, last.
  #task(row: Row): void {
    const id = `${row['job']}.${row['task_index']}`;
    const before = this.tasks.get(id);
    const state = row['state'] as TaskState;
    const version = Number(row['version']);
    if (before) {
      if (version <= before.version) throw new Violation('I4', `task ${id} went back in version`);
      if (!reachable(before.state, state)) {
        throw new Violation('I4', `task ${id} went from ${before.state} to ${state}`);
      }
    }
    this.tasks.set(id, { state, version, attempts: Number(row['attempts']) });
    if (state !== 'SUCCEEDED' || before?.state === 'SUCCEEDED') return;
    const last = this.#attempts.get(`${id}.${row['attempts']}`);
    const uid = String(last?.['uid']);
    if (this.#exits.get(uid) !== 0) {
      throw new Violation('I11', `task ${id} succeeded, but its last attempt ${uid} did not`);
    }
  }

  // I7: what claims hold on a worker is what it has, at most.
  #checkClaims(): void {
    const held = new Map<string, { cpu: number; devices: Set<number>; ports: Set<number> }>();
    for (const [owner, claim] of this.#claims) {
      const worker = String(claim['worker']);
      const sum = held.get(worker) ?? { cpu: 0, devices: new Set(), ports: new Set() };
      held.set(worker, sum);
      sum.cpu += Number(claim['cpu_millis']);
      for (const device of JSON.parse(String(claim['devices'])) as number[]) {
        if (sum.devices.has(device)) throw new Violation('I7', `device ${device} twice: ${owner}`);
        sum.devices.add(device);
      }
      for (const port of JSON.parse(String(claim['ports'])) as number[]) {
        if (sum.ports.has(port)) throw new Violation('I7', `port ${port} twice: ${owner}`);
        sum.ports.add(port);
      }
      const resources = JSON.parse(String(this.#workers.get(worker)?.['resources'] ?? 'null')) as {
        cpuMillis: number;
      } | null;
      if (!resources) throw new Violation('I7', `claim ${owner} on no worker`);
      if (sum.cpu > resources.cpuMillis) throw new Violation('I7', `CPUs of ${worker} overbooked`);
      const parsed = parseAttemptUid(owner);
      const attempt = parsed && this.#attempts.get(`${parsed.job}.${parsed.index}.${parsed.n}`);
      if (attempt?.['state'] === 'ENDED') throw new Violation('I7', `claim of ended ${owner}`);
    }
  }

  // I8: members of a gang are assigned in one batch, all or none.
  #checkGangs(batch: WriteBatch): void {
    const begun = new Map<string, number>();
    const begins = batch.tables.attempts;
    for (const named of [
      ...nameRows('attempts', begins?.inserts ?? [], 'insert'),
      ...nameRows('attempts', begins?.fresh ?? [], 'fresh'),
    ]) {
      const { shape } = unpackSpec(String(this.jobs.get(String(named['job']))?.['spec']));
      if (shape.kind !== 'gang') continue;
      const key = `${named['job']} ${named['round']} ${shape.size}`;
      begun.set(key, (begun.get(key) ?? 0) + 1);
    }
    for (const [key, count] of begun) {
      const size = Number(key.split(' ')[2]);
      if (count % size !== 0) throw new Violation('I8', `${count} of ${size} members of ${key}`);
    }
  }

  #checkCancelled(): void {
    for (const [id, attempts] of this.#cancelled) {
      if (this.#attemptCount(id) > attempts) {
        throw new Violation('I13', `job ${id} got an attempt after its cancel`);
      }
    }
  }

  #attemptCount(job: string): number {
    let count = 0;
    for (const [task, attempts] of this.#attemptsOfTask) {
      if (task.startsWith(`${job}.`)) count += attempts.length;
    }
    return count;
  }

  #merge(rows: Map<string, Row>, key: unknown, row: Row): void {
    rows.set(String(key), { ...rows.get(String(key)), ...row });
  }
}

function rowsOf(batch: WriteBatch, table: TableName): Row[] {
  const writes = batch.tables[table];
  if (!writes) return [];
  // Updates first: one batch may hold the end of an attempt and the beginning of the next.
  return [
    ...nameRows(table, writes.updates, 'update'),
    ...nameRows(table, writes.inserts, 'insert'),
    ...nameRows(table, writes.fresh, 'fresh'),
  ];
}

function nameRows(
  table: TableName,
  values: (string | number | null)[],
  operation: 'insert' | 'update' | 'fresh',
): Row[] {
  const { key, fixed, mutable } = TABLES[table];
  const whole = operation === 'insert' ? mutable : [];
  const columns = operation === 'update' ? [...mutable, ...key] : [...key, ...fixed, ...whole];
  const rows: Row[] = [];
  for (let at = 0; at < values.length; at += columns.length) {
    const row = Object.fromEntries(columns.map((column, i) => [column, values[at + i] ?? null]));
    rows.push(operation === 'fresh' ? { ...FRESH[table], ...row } : row);
  }
  return rows;
}

/** What the schema gives a fresh row, as far as a checker looks at it. */
const FRESH: Partial<Record<TableName, Row>> = {
  jobs: { ended_at_ms: null, round: 0, version: 1 },
  attempts: { state: 'ASSIGNED', version: 1 },
};

/** One batch may hold several moves of a task. */
function reachable(from: TaskState, to: TaskState): boolean {
  const seen = new Set<TaskState>([from]);
  for (const state of seen) {
    if (ENDED.has(state)) continue;
    for (const move of Object.values(TASK_MOVES)) {
      if ((move.from as readonly TaskState[]).includes(state)) seen.add(move.to);
    }
  }
  return seen.has(to);
}
