/** What a fake coordinator answers about stored files and old deeds: there are none. */
import type { Coordinator } from './coordinator.ts';

export function fakeFiles(): Pick<
  Coordinator,
  | 'listCheckpoints'
  | 'addCheckpoint'
  | 'attemptAccess'
  | 'attemptSecrets'
  | 'requestCheckpoint'
  | 'listAudit'
  | 'recordAccess'
> {
  return {
    listCheckpoints: async () => ({ items: [], nextCursor: null }),
    requestCheckpoint: async () => [],
    addCheckpoint: async () => undefined,
    attemptAccess: async () => undefined,
    attemptSecrets: async () => ({ values: {}, token: null }),
    listAudit: async () => ({ items: [], nextCursor: null }),
    recordAccess: async () => undefined,
  };
}
