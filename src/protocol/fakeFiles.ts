/** What a fake coordinator answers about stored files and old deeds: there are none but data. */
import { DroverError } from '../lib/errors.ts';
import type { Coordinator } from './coordinator.ts';
import type { DataView } from './dataSets.ts';
import { allow } from './fakeAnswers.ts';

export function fakeFiles(): Pick<
  Coordinator,
  | 'listCheckpoints'
  | 'addCheckpoint'
  | 'attemptAccess'
  | 'attemptSecrets'
  | 'attemptTokens'
  | 'exchangeCommands'
  | 'requestCheckpoint'
  | 'listAudit'
  | 'policy'
  | 'recordAccess'
  | 'listData'
  | 'putData'
  | 'removeData'
  | 'namedBlobs'
> {
  const sets = new Map<string, DataView>();
  return {
    async listData(who) {
      allow(who, 'jobs:read');
      return [...sets.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },
    async putData(who, wanted) {
      allow(who, 'jobs:manage');
      const known = sets.get(wanted.name);
      if (known?.hash === wanted.hash) return known;
      const version = (known?.version ?? 0) + 1;
      const view = { ...wanted, version, createdAtMs: 0, createdBy: who.user };
      sets.set(wanted.name, view);
      return view;
    },
    async removeData(who, name) {
      allow(who, 'jobs:manage');
      if (!sets.delete(name)) throw new DroverError('NOT_FOUND', `there is no data set ${name}`);
    },
    async namedBlobs(who) {
      allow(who, 'fleet:manage');
      const items = [...sets.values()].map(({ kind, hash }) => `${kind}:${hash}`);
      return { items, nextCursor: null };
    },
    listCheckpoints: async () => ({ items: [], nextCursor: null }),
    requestCheckpoint: async () => [],
    addCheckpoint: async () => undefined,
    attemptAccess: async () => undefined,
    attemptSecrets: async () => ({ values: {}, token: null }),
    attemptTokens: async () => ({ tokens: [], refused: [], renewInMs: 60_000 }),
    exchangeCommands: async () => ({ commands: [] }),
    listAudit: async () => ({ items: [], nextCursor: null }),
    policy: async () => ({ text: '', loadedAtMs: null, problem: null }),
    recordAccess: async () => undefined,
  };
}
