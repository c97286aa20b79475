/** Data sets by name: what a name means now; what it meant before is with the jobs that used it. */
import type { DataSet } from '../model/dataSet.ts';
import type { RowOperation } from './changes.ts';
import { DONE, missing, type PutData, type RemoveData, type Result } from './mutations.ts';
import type { State } from './state.ts';

export class DataSets {
  readonly #byTenant = new Map<string, Map<string, DataSet>>();

  constructor(all: readonly DataSet[]) {
    for (const one of all) this.set(one);
  }

  get(tenant: string, name: string): DataSet | undefined {
    return this.#byTenant.get(tenant)?.get(name);
  }

  of(tenant: string): Iterable<DataSet> {
    return this.#byTenant.get(tenant)?.values() ?? [];
  }

  *all(): Generator<DataSet> {
    for (const sets of this.#byTenant.values()) yield* sets.values();
  }

  set(dataSet: DataSet): void {
    const sets = this.#byTenant.get(dataSet.tenant) ?? new Map<string, DataSet>();
    this.#byTenant.set(dataSet.tenant, sets.set(dataSet.name, dataSet));
  }

  delete({ tenant, name }: DataSet): void {
    this.#byTenant.get(tenant)?.delete(name);
  }
}

/** The same bytes under the same name change nothing. */
export function putData(state: State, { dataSet: wanted, by }: PutData, nowMs: number): Result {
  const { tenant, name, kind, hash, bytes } = wanted;
  const known = state.dataSets.get(tenant, name);
  if (known?.hash === hash && known.kind === kind) return DONE;
  const version = (known?.version ?? 0) + 1;
  const dataSet: DataSet = { ...wanted, version, createdAtMs: nowMs, createdBy: by };
  const unwritten = forget(state, tenant, name);
  const stored = unwritten ? unwritten !== 'insert' : known !== undefined;
  state.dataSets.set(dataSet);
  state.changes.dataSets.set(dataSet, stored ? 'update' : 'insert');
  state.note(nowMs, { kind: 'data.put', tenant, data: { name, hash, bytes, by } });
  return DONE;
}

export function removeData(state: State, mutation: RemoveData, nowMs: number): Result {
  const { tenant, name, by } = mutation;
  const known = state.dataSets.get(tenant, name);
  if (!known) return missing(`data set ${name}`);
  if (forget(state, tenant, name) !== 'insert') state.changes.dataSets.set(known, 'delete');
  state.dataSets.delete(known);
  state.note(nowMs, { kind: 'data.removed', tenant, data: { name, hash: known.hash, by } });
  return DONE;
}

/** Of what is not written yet only the last word counts; says what that was to be. */
function forget(state: State, tenant: string, name: string): RowOperation | undefined {
  for (const [dataSet, operation] of state.changes.dataSets) {
    if (dataSet.tenant !== tenant || dataSet.name !== name) continue;
    state.changes.dataSets.delete(dataSet);
    return operation;
  }
  return undefined;
}
