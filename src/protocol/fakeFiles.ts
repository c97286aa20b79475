/** What a fake coordinator answers about stored files and old deeds: there are none. */
import type { Coordinator } from './coordinator.ts';

export function fakeFiles(): Pick<
  Coordinator,
  'listCheckpoints' | 'addCheckpoint' | 'attemptAccess' | 'listAudit' | 'recordAccess'
> {
  return {
    listCheckpoints: async () => ({ items: [], nextCursor: null }),
    addCheckpoint: async () => undefined,
    attemptAccess: async () => undefined,
    listAudit: async () => ({ items: [], nextCursor: null }),
    recordAccess: async () => undefined,
  };
}
