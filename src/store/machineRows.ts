/** Rows of workers, instances, hosts and what pools have spent. */
import type { Host } from '../model/host.ts';
import type { Instance } from '../model/instance.ts';
import type { PoolSpending } from '../model/poolSpending.ts';
import type { Worker } from '../model/worker.ts';
import type { Changes } from '../state/changes.ts';
import type { Value, WriteBatch } from './contract.ts';
import { nothing, split } from './rows.ts';

export interface WorkerRow {
  id: string;
  name: string;
  pool: string;
  machine: string;
  boot_id: string;
  address: string;
  network: string;
  resources: string;
  attributes: string;
  terms: string;
  agent_version: string;
  state: string;
  draining: number;
  token_hash: string;
  join_token: string;
  host: string;
  instance: string | null;
  ends_at_ms: number | null;
  problems: string;
  joined_at_ms: number;
  ended_at_ms: number | null;
  version: number;
}

/** What nobody searches by is one text. */
export interface InstanceRow {
  id: string;
  pool: string;
  state: string;
  handle: string;
  record: string;
  created_at_ms: number;
  ended_at_ms: number | null;
  version: number;
}

export interface HostRow {
  id: string;
  record: string;
  version: number;
}

export interface SpendingRow {
  pool: string;
  record: string;
  version: number;
}

export function encodeMachines(changes: Changes, tables: WriteBatch['tables']): void {
  if (changes.workers.size > 0) {
    tables.workers = split(changes.workers, byId, workerFixed, workerMutable);
  }
  if (changes.instances.size > 0) {
    tables.instances = split(changes.instances, byId, instanceFixed, instanceMutable);
  }
  if (changes.hosts.size > 0) {
    tables.hosts = split(changes.hosts, byId, nothing, recordMutable);
  }
  if (changes.spending.size > 0) {
    tables.pool_spending = split(changes.spending, byPool, nothing, recordMutable);
  }
}

function byId(to: Value[], { id }: { id: string }): void {
  to.push(id);
}

function byPool(to: Value[], { pool }: PoolSpending): void {
  to.push(pool);
}

function workerFixed(to: Value[], worker: Worker): void {
  to.push(worker.machine, worker.joinedAtMs);
}

function workerMutable(to: Value[], worker: Worker): void {
  to.push(
    worker.name,
    worker.pool,
    worker.bootId,
    worker.address,
    worker.network,
    JSON.stringify(worker.resources),
    JSON.stringify(worker.attributes),
    JSON.stringify(worker.terms),
    worker.agentVersion,
    worker.state,
    worker.draining ? 1 : 0,
    worker.tokenHash,
    worker.joinToken,
    worker.host,
    worker.instance,
    worker.endsAtMs,
    JSON.stringify(worker.problems),
    worker.endedAtMs,
    worker.version,
  );
}

export function decodeWorker(row: WorkerRow): Worker {
  return {
    id: row.id as Worker['id'],
    name: row.name,
    pool: row.pool,
    machine: row.machine,
    bootId: row.boot_id,
    address: row.address,
    network: row.network,
    resources: JSON.parse(row.resources) as Worker['resources'],
    attributes: JSON.parse(row.attributes) as Worker['attributes'],
    terms: JSON.parse(row.terms) as Worker['terms'],
    agentVersion: row.agent_version,
    state: row.state as Worker['state'],
    draining: row.draining === 1,
    tokenHash: row.token_hash,
    joinToken: row.join_token,
    host: row.host,
    instance: row.instance as Worker['instance'],
    endsAtMs: row.ends_at_ms,
    problems: JSON.parse(row.problems) as Worker['problems'],
    joinedAtMs: row.joined_at_ms,
    endedAtMs: row.ended_at_ms,
    version: row.version,
  };
}

function instanceFixed(to: Value[], { pool, createdAtMs }: Instance): void {
  to.push(pool, createdAtMs);
}

function instanceMutable(to: Value[], instance: Instance): void {
  const { id: _id, pool: _pool, state, handle, endedAtMs, version, ...rest } = instance;
  to.push(state, handle, JSON.stringify(rest), endedAtMs, version);
}

export function decodeInstance(row: InstanceRow): Instance {
  const { id, pool, state, handle, version } = row;
  const rest = JSON.parse(row.record) as Omit<Instance, 'id' | 'pool' | 'state'>;
  return {
    ...rest,
    ...{ pool, handle, version, endedAtMs: row.ended_at_ms },
    id: id as Instance['id'],
    state: state as Instance['state'],
  };
}

function recordMutable(to: Value[], record: Host | PoolSpending): void {
  const { version, ...rest } = record;
  to.push(JSON.stringify(rest), version);
}

export function decodeHost({ record, version }: HostRow): Host {
  return { ...(JSON.parse(record) as Omit<Host, 'version'>), version };
}

export function decodeSpending({ record, version }: SpendingRow): PoolSpending {
  return { ...(JSON.parse(record) as Omit<PoolSpending, 'version'>), version };
}
