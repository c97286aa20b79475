/** Who looked into what and who changed what: kept as events, listed the newest first. */
import { DroverError } from '../lib/errors.ts';
import type { AttemptUid } from '../model/ids.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { State } from '../state/state.ts';
import type { History } from '../store/contract.ts';
import type { Committer } from './committer.ts';
import { cutPage, decodeNumbers } from './cursors.ts';
import type { Mutate } from './mutate.ts';
import { eventView } from './views.ts';

export interface AuditOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  history: History;
}

export function createAudit({
  state,
  mutate,
  committer,
  history,
}: AuditOptions): Pick<Coordinator, 'listAudit' | 'recordAccess'> {
  return {
    async listAudit(who, page) {
      await committer.durable();
      const newest = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
      const [epoch = 0, seq = 0] = decodeNumbers(page.cursor, newest);
      const rows = await history.forTenant(who.tenant).audited([epoch, seq], page.limit + 1);
      return cutPage(rows.map(eventView), page.limit, (event) => [event.epoch, event.seq]);
    },

    async recordAccess(who, { how, attempt: uid, details }) {
      const attempt = state.attempts.get(uid as AttemptUid);
      if (attempt?.tenant !== who.tenant) {
        throw new DroverError('CONFLICT', `the attempt ${uid} does not run any more`);
      }
      const { tenant, job, task } = attempt;
      const data = { by: who.user, token: who.token, how, ...details };
      mutate({ kind: 'note', what: 'job.inside', tenant, job, task, attempt: attempt.uid, data });
      await committer.durable();
    },
  };
}
