/** The fleet half of the Coordinator: the cluster, workers, tokens, who is calling. */
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import { parseAttemptUid, type TokenId, type WorkerId } from '../model/ids.ts';
import { SCOPES, type Principal } from '../model/token.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { ClusterView } from '../protocol/fleet.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';
import { cutPage, decodeText } from './cursors.ts';
import type { Mutate } from './mutate.ts';
import { hashSecret, newSecret } from './secrets.ts';
import type { Sessions } from './sessions.ts';
import { tokenView, workerView } from './views.ts';

export interface FleetOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  sessions: Sessions;
  clock: Clock;
  random: Random;
  cluster: Pick<ClusterView, 'name' | 'version' | 'startedAtMs' | 'store' | 'attemptLeaseMs'>;
}

export type Fleet = Pick<
  Coordinator,
  | 'authenticate'
  | 'cluster'
  | 'listWorkers'
  | 'setDraining'
  | 'revokeWorker'
  | 'listTokens'
  | 'createToken'
  | 'revokeToken'
>;

export function createFleet(options: FleetOptions): Fleet {
  const { state, mutate, committer, sessions, clock, random } = options;
  return {
    async authenticate(secret) {
      const token = state.tokensByHash.get(hashSecret(secret));
      if (!token || token.kind === 'join') return undefined;
      if (token.expiresAtMs !== null && token.expiresAtMs <= clock.now()) return undefined;
      await committer.durable();
      const { id, tenant, user, scopes, attempt } = token;
      const job = attempt === null ? undefined : parseAttemptUid(attempt)?.job;
      return { token: id, tenant, user, scopes, ...(job !== undefined && { job }) };
    },

    async cluster() {
      await committer.durable();
      return { ...options.cluster, ...summary(state) };
    },

    async listWorkers(_who, page) {
      const after = decodeText(page.cursor) ?? '';
      const found = [...state.workers.values()]
        .filter(({ worker }) => worker.id > after)
        .toSorted((a, b) => (a.worker.id < b.worker.id ? -1 : 1))
        .slice(0, page.limit + 1);
      const items = found.map((live) => workerView(live, sessions.lastContactAtMs(live.worker.id)));
      await committer.durable();
      return cutPage(items, page.limit, (last) => [last.id]);
    },

    async setDraining(who, id, draining) {
      const worker = id as WorkerId;
      const result = mutate({ kind: 'drain', worker, draining, by: who.user });
      const live = state.workers.get(worker);
      if (result.kind === 'missing' || !live) throw missingThing('worker', id, 'drover workers');
      const view = workerView(live, sessions.lastContactAtMs(worker));
      await committer.durable();
      return view;
    },

    async revokeWorker(who, id) {
      const worker = id as WorkerId;
      const result = mutate({ kind: 'revoke-worker', worker, by: who.user });
      const live = state.workers.get(worker);
      if (result.kind === 'missing' || !live) throw missingThing('worker', id, 'drover workers');
      const view = workerView(live, sessions.lastContactAtMs(worker));
      await committer.durable();
      return view;
    },

    async listTokens(who, page) {
      const after = decodeText(page.cursor) ?? '';
      const items = [...state.tokens.values()]
        .filter((token) => token.tenant === who.tenant && token.id > after)
        .toSorted((a, b) => (a.id < b.id ? -1 : 1))
        .slice(0, page.limit + 1)
        .map(tokenView);
      await committer.durable();
      return cutPage(items, page.limit, (last) => [last.id]);
    },

    async createToken(who, request) {
      const { expiresInMs, kind, name, pool, maxLiveWorkers } = request;
      refuseMoreThanOwn(who, request.scopes);
      const secret = newSecret(kind === 'join' ? 'drj' : 'drv', random);
      const result = mutate({
        kind: 'create-token',
        token: {
          kind,
          name,
          tenant: who.tenant,
          user: request.user ?? who.user,
          scopes: kind === 'join' ? [] : request.scopes,
          hash: hashSecret(secret),
          pool,
          maxLiveWorkers,
          expiresAtMs: expiresInMs === undefined ? null : clock.now() + expiresInMs,
        },
      });
      const token = result.kind === 'token' ? state.tokens.get(result.id) : undefined;
      if (!token) throw new Error(`creating a token gave ${result.kind}`);
      await committer.durable();
      return { ...tokenView(token), secret };
    },

    async revokeToken(who, id) {
      const token = state.tokens.get(id as TokenId);
      if (token?.tenant !== who.tenant) throw missingThing('token', id, 'drover tokens');
      mutate({ kind: 'revoke-token', token: token.id });
      await committer.durable();
      return tokenView(token);
    },
  };
}

/** Nobody hands out what he does not have. */
function refuseMoreThanOwn(who: Principal, scopes: readonly string[]): void {
  const own: readonly string[] = who.scopes;
  const more = scopes.filter((scope) => !own.includes(scope));
  if (more.length === 0) return;
  throw new DroverError('PERMISSION_DENIED', `your token lacks ${more.join(', ')} itself`, {
    hint: `you may give out: ${own.filter((scope) => SCOPES.includes(scope as never)).join(', ')}`,
  });
}

function missingThing(what: string, id: string, list: string): DroverError {
  return new DroverError('NOT_FOUND', `there is no ${what} ${id.slice(0, 100)}`, {
    hint: `list them with: ${list}`,
  });
}

function summary(state: State): Pick<ClusterView, 'id' | 'epoch' | 'workers' | 'tasks'> {
  const workers = { online: 0, suspect: 0, draining: 0 };
  for (const { worker } of state.workers.values()) {
    if (worker.draining) workers.draining++;
    if (worker.state === 'ONLINE') workers.online++;
    if (worker.state === 'SUSPECT') workers.suspect++;
  }
  const tasks = { pending: 0, assigned: 0, running: 0 };
  for (const { counts } of state.jobs.values()) {
    tasks.pending += counts.PENDING;
    tasks.assigned += counts.ASSIGNED;
    tasks.running += counts.RUNNING;
  }
  return { id: state.clusterId, epoch: state.epoch, workers, tasks };
}
