/** Data sets by name, what names mean at submission, and everything that keeps a blob. */
import { DroverError } from '../lib/errors.ts';
import { dataUri, type DataSet } from '../model/dataSet.ts';
import type { JobSpec } from '../model/job.ts';
import { unpackSpec } from '../model/spec.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { DataView } from '../protocol/dataSets.ts';
import type { State } from '../state/state.ts';
import type { History } from '../store/contract.ts';
import type { Committer } from './committer.ts';
import { decodeText, encodeCursor } from './cursors.ts';
import type { Mutate } from './mutate.ts';

/** Names in one page of what keeps blobs: some 400 KB. */
const NAMED_PAGE = 5000;

export interface DataSetOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  history: History;
}

type DataCalls = Pick<Coordinator, 'listData' | 'putData' | 'removeData' | 'namedBlobs'>;

export function createDataSets(options: DataSetOptions): DataCalls {
  const { state, mutate, committer } = options;
  return {
    async listData(who) {
      const views = [...state.dataSets.of(who.tenant)].map(viewOf);
      await committer.durable();
      return views.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },

    async putData(who, wanted) {
      const { tenant, user: by } = who;
      mutate({ kind: 'put-data', dataSet: { tenant, ...wanted }, by });
      const view = viewOf(state.dataSets.get(tenant, wanted.name)!);
      await committer.durable();
      return view;
    },

    async removeData(who, name) {
      const { tenant, user: by } = who;
      const result = mutate({ kind: 'remove-data', tenant, name, by });
      if (result.kind === 'missing') throw noSuchData(name);
      await committer.durable();
    },

    async namedBlobs(who, cursor) {
      await committer.durable();
      return readNames(options, who.tenant, cursor);
    },
  };
}

function viewOf(dataSet: DataSet): DataView {
  const { name, version, kind, hash, bytes, files, createdAtMs, createdBy } = dataSet;
  return { name, version, kind, hash, bytes, files, createdAtMs, createdBy };
}

function noSuchData(name: string): DroverError {
  return new DroverError('NOT_FOUND', `there is no data set ${name}`, {
    hint: 'list them with: drover data ls',
  });
}

/** The same specs with `data:NAME` as what the name means now, so that a rerun is exact. */
export function resolveData(state: State, tenant: string, specs: JobSpec[]): JobSpec[] {
  if (!specs.some((spec) => spec.inputs?.some(({ uri }) => uri.startsWith('data:')))) return specs;
  return specs.map((spec) => {
    if (!spec.inputs) return spec;
    const inputs = spec.inputs.map((input) => {
      if (!input.uri.startsWith('data:')) return input;
      const name = input.uri.slice('data:'.length);
      const found = state.dataSets.get(tenant, name);
      if (!found) throw noSuchData(name);
      if (input.hash !== '' && input.hash !== found.hash) {
        const detail = `the data set ${name} has the hash ${found.hash}, not ${input.hash}`;
        throw new DroverError('CONFLICT', detail, { hint: 'leave the hash out, or put it again' });
      }
      return { ...input, uri: dataUri(found), hash: found.hash };
    });
    return { ...spec, inputs };
  });
}

/** One source after the other; each page says where the next begins. */
async function readNames(
  { state, history }: DataSetOptions,
  tenant: string,
  cursor: string | null,
) {
  const rows = history.forTenant(tenant);
  const [source = 'jobs', after = ''] = decodeText(cursor ?? undefined)?.split(' ') ?? [];
  const next = (name: string, last = ''): string => encodeCursor([`${name} ${last}`]);
  if (source === 'jobs') {
    const found = await rows.specsWithBlobs(after, NAMED_PAGE);
    const items = found.flatMap(({ spec }) => namesIn(unpackSpec(spec)));
    const more = found.length === NAMED_PAGE;
    return { items, nextCursor: more ? next('jobs', found.at(-1)!.id) : next('results') };
  }
  if (source === 'results' || source === 'checkpoints') {
    const found = await rows.manifests(source, after, NAMED_PAGE);
    const items = found.map((hash) => `tree:${hash}`);
    const more = found.length === NAMED_PAGE;
    const then = source === 'results' ? next('checkpoints') : next('data');
    return { items, nextCursor: more ? next(source, found.at(-1)) : then };
  }
  return { items: [...state.dataSets.of(tenant)].map(dataUri), nextCursor: null };
}

function namesIn({ code, inputs }: JobSpec): string[] {
  const names = (inputs ?? []).flatMap(({ uri }) => (/^(blob|tree):/.test(uri) ? [uri] : []));
  if (code) names.push(`tree:${code.bundle}`);
  if (code?.diff) names.push(`blob:${code.diff}`);
  return names;
}
