/** The client's half of the record of who did what. */
import type { Coordinator } from '../coordinator.ts';
import type { Connection } from './connection.ts';
import { eventFromWire } from './jobMessages.ts';

export function auditCalls({
  coordinator,
  call,
  by,
}: Connection): Pick<Coordinator, 'listAudit' | 'recordAccess'> {
  return {
    listAudit: (who, page) =>
      call(
        by(who),
        (options) => coordinator.listAudit({ page }, options),
        ({ events, nextCursor = null }) => ({ items: events.map(eventFromWire), nextCursor }),
      ),
    recordAccess: (who, access) =>
      call(
        by(who),
        (options) => coordinator.recordAccess(access, options),
        () => undefined,
      ),
  };
}
