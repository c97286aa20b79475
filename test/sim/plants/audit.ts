/** Planted bugs in the record of who did what. */
import type { Plant } from './plant.ts';

export const AUDIT_PLANTS: Plant[] = [
  {
    name: 'audit-begins-anew',
    what: 'a new controller does not know where the chains of its predecessor ended',
    shownBy: ['I16'],
    patches: [
      {
        file: 'src/state/state.ts',
        find: 'new AuditChains(snapshot.auditHeads)',
        replace: 'new AuditChains([])',
      },
    ],
  },
  {
    name: 'priority-in-memory-only',
    what: 'a changed priority is not written',
    shownBy: ['I16'],
    patches: [{ file: 'src/store/encode.ts', find: 'job.newPriority,', replace: 'null,' }],
  },
];
