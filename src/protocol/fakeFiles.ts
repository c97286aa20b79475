/** What a fake coordinator answers about stored files: nothing is stored. */
import type { Coordinator } from './coordinator.ts';

export function fakeFiles(): Pick<
  Coordinator,
  'listCheckpoints' | 'requestCheckpoint' | 'addCheckpoint' | 'attemptAccess'
> {
  return {
    listCheckpoints: async () => ({ items: [], nextCursor: null }),
    requestCheckpoint: async () => [],
    addCheckpoint: async () => undefined,
    attemptAccess: async () => undefined,
  };
}
