/** What the controller answers agents: join and sync. */
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import { OPEN_TERMS } from '../model/placement.ts';
import type { AttemptUid, InstanceId } from '../model/ids.ts';
import type { IdleRule } from '../model/jobParts.ts';
import type {
  JoinReply,
  JoinRequest,
  Observation,
  StopOrder,
  SyncReply,
  SyncRequest,
  Timers,
} from '../protocol/agent.ts';
import type { Join, Observed, Result } from '../state/mutations.ts';
import type { LiveWorker } from '../state/live.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';
import { leaseOf } from './leases.ts';
import { BEGUN } from '../model/worker.ts';
import { HANDLE } from './pools/handle.ts';
import type { JoinSecrets } from './pools/joinSecrets.ts';
import type { Mutate } from './mutate.ts';
import { orderOf } from './orders.ts';
import type { CheckpointAsks } from './checkpointAsks.ts';
import { UID_RANDOM_BYTES } from './planner.ts';
import { hashSecret, newSecret } from './secrets.ts';
import type { Sessions } from './sessions.ts';
import type { Tunnels } from './tunnels.ts';

export interface AgentsOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  sessions: Sessions;
  tunnels: Tunnels;
  checkpointAsks: CheckpointAsks;
  clock: Clock;
  random: Random;
  timers: Timers;
  /** For jobs that have no rule of their own; null: none. */
  idleDevices: IdleRule | null;
  /** Of machines that providers bring; absent: none do. */
  joinSecrets?: JoinSecrets | undefined;
  /** What all workers of a pool have by its settings. */
  attributesOf?: (pool: string) => Record<string, string>;
}

export interface Agents {
  join(joinToken: string, request: JoinRequest): Promise<JoinReply>;
  sync(workerToken: string, request: SyncRequest): Promise<SyncReply>;
  /** The live worker a worker token belongs to; throws UNAUTHENTICATED or STALE. */
  workerOf(workerToken: string): LiveWorker;
}

export function createAgents(options: AgentsOptions): Agents {
  const { state, mutate, committer, sessions, tunnels, clock, random, timers } = options;
  const { checkpointAsks, idleDevices } = options;
  let generation = 0;

  function workerOf(workerToken: string): LiveWorker {
    const live = state.workersByToken.get(hashSecret(workerToken));
    if (live) return live;
    throw new DroverError('UNAUTHENTICATED', 'this worker token is not valid any more', {
      hint: 'the agent joins again with its join token',
    });
  }

  async function join(joinToken: string, request: JoinRequest): Promise<JoinReply> {
    const ticket = ticketOf(joinToken);
    const secret = newSecret('drw', random);
    const { capabilities, instance: handle, host = request.name, fresh, ...registration } = request;
    const result = mutate({
      kind: 'join',
      worker: {
        ...registration,
        host,
        attributes: {
          ...options.attributesOf?.(ticket.pool),
          ...request.attributes,
          capabilities: capabilities.join(' '),
          ...(fresh !== undefined && { [BEGUN]: fresh }),
          ...(ticket.byHandle && handle !== undefined && { [HANDLE]: handle }),
        },
        terms: { ...OPEN_TERMS, ...request.terms },
        pool: ticket.pool,
        joinToken: ticket.token,
        tokenHash: hashSecret(secret),
      },
      maxLiveWorkers: ticket.maxLiveWorkers,
      ...(ticket.instance && instanceJoin(ticket.instance)),
      ...(ticket.byHandle && handle !== undefined && { handle }),
    });
    if (result.kind !== 'joined') throw refusedJoin(result);
    sessions.reset(result.worker);
    await committer.durable();
    const { clusterId, epoch } = state;
    return { worker: result.worker, token: secret, clusterId, epoch, timers };
  }

  /** What a join token allows: one that was made, or one that was computed for a machine. */
  function ticketOf(joinToken: string): Ticket {
    const computed = options.joinSecrets?.read(joinToken);
    if (computed?.kind === 'pool') {
      return { pool: computed.pool, token: '', maxLiveWorkers: 0, byHandle: true };
    }
    if (computed) {
      const pool = state.machines.instances.get(computed.id)?.instance.pool ?? '';
      return { pool, token: '', maxLiveWorkers: 0, instance: computed.id };
    }
    const token = state.tokensByHash.get(hashSecret(joinToken));
    const expired = token?.expiresAtMs != null && token.expiresAtMs <= clock.now();
    if (token?.kind === 'join' && !expired) {
      return { pool: token.pool, token: token.id, maxLiveWorkers: token.maxLiveWorkers };
    }
    throw new DroverError('UNAUTHENTICATED', 'the join token is unknown, expired or revoked', {
      hint: 'make a new one with: drover tokens create --kind join',
    });
  }

  function instanceJoin(instance: InstanceId): Pick<Join, 'instance' | 'randomHex'> {
    const tasks = state.machines.instances.get(instance)?.instance.tasks ?? [];
    return { instance, randomHex: tasks.map(() => random.hex(UID_RANDOM_BYTES)) };
  }

  async function sync(workerToken: string, request: SyncRequest): Promise<SyncReply> {
    const live = workerOf(workerToken);
    const worker = live.worker.id;
    if (request.worker !== worker) {
      throw new DroverError('PERMISSION_DENIED', `the token is not worker ${request.worker}'s`);
    }
    if (!sessions.advance(worker, request.start, request.seq)) throw superseded();
    if (live.worker.state === 'SUSPECT') {
      mutate({ kind: 'move-worker', worker, move: 'recover', reason: 'in contact again' });
    }
    if (request.health) {
      mutate({ kind: 'report-health', worker, problems: request.health.problems });
    }
    if (request.held) state.deltas.held.set(worker, request.held);
    const observed = request.observed.map(observedOf);
    // A new controller does not know the order of syncs from before it: one of those may come in
    // late, and what it lacks proves nothing. What was sent after an answer of this epoch is the
    // whole truth.
    const complete = request.epoch === state.epoch;
    mutate({ kind: 'observe', worker, observed, complete });
    let reply = replyTo(live, request);
    if (request.wait && silent(reply)) {
      await sessions.park(worker, timers.longPollMs);
      // A newer sync has the newer truth: this reply must not look like an answer to it.
      if (!sessions.isNewest(worker, request.start, request.seq)) throw superseded();
      if (state.workers.get(worker) !== live) throw superseded();
      reply = replyTo(live, request);
    }
    await committer.durable();
    return reply;
  }

  /** What the agent should do about the difference between what it sees and what should be. */
  function replyTo(live: LiveWorker, request: SyncRequest): SyncReply {
    const reply: SyncReply = {
      clusterId: state.clusterId,
      epoch: state.epoch,
      generation: ++generation,
      desired: [],
      stop: [],
      acknowledged: [],
      tunnels: tunnels.take(live.worker.id),
      timers,
    };
    const asked = checkpointAsks.take(live.worker.id);
    if (asked.length > 0) reply.checkpoint = asked;
    const seen = new Set<string>();
    for (const observation of request.observed) {
      seen.add(observation.uid);
      const attempt = live.attempts.get(observation.uid as AttemptUid);
      if (attempt) {
        if (attempt.state === 'STOPPING') reply.stop.push(stopOf(state, attempt.uid));
      } else if (observation.state === 'ENDED') reply.acknowledged.push(observation.uid);
      else reply.stop.push({ uid: observation.uid, cause: 'lost', graceMs: 0 });
    }
    for (const attempt of live.attempts.values()) {
      if (seen.has(attempt.uid)) continue;
      if (attempt.state === 'STOPPING') reply.stop.push(stopOf(state, attempt.uid));
      else {
        const order = orderOf(state, attempt, leaseOf(state, attempt, timers), idleDevices);
        if (order) reply.desired.push(order);
      }
    }
    return reply;
  }

  return { join, sync, workerOf };
}

function stopOf(state: State, uid: AttemptUid): StopOrder {
  const attempt = state.attempts.get(uid);
  const graceMs = attempt ? (state.jobs.get(attempt.job)?.job.spec.graceMs ?? 0) : 0;
  return { uid, cause: attempt?.stopCause ?? 'lost', graceMs };
}

function silent(reply: SyncReply): boolean {
  return (
    reply.desired.length === 0 &&
    reply.stop.length === 0 &&
    reply.acknowledged.length === 0 &&
    reply.tunnels.length === 0 &&
    reply.checkpoint === undefined
  );
}

interface Ticket {
  pool: string;
  token: string;
  maxLiveWorkers: number;
  instance?: InstanceId;
  /** The machine says which instance it is. */
  byHandle?: boolean;
}

function refusedJoin(result: Result): DroverError {
  if (result.kind === 'instance-ended') {
    return new DroverError('INSTANCE_ENDED', `${result.reason}: nothing is to run there`, {
      hint: 'the agent ends; drover instances shows why',
    });
  }
  const limit = result.kind === 'too-many' ? result.limit : 0;
  return new DroverError('TOO_MANY', `${limit} workers live by this join token already`, {
    hint: 'use another token, or raise its maxLiveWorkers',
  });
}

function superseded(): DroverError {
  return new DroverError('STALE', 'a newer sync of this worker has come in');
}

function observedOf(observation: Observation): Observed {
  const uid = observation.uid as AttemptUid;
  const { state, facts, progress, idle } = observation;
  if (state !== 'ENDED') {
    return {
      ...{ uid, state, ending: null },
      ...(facts && { facts }),
      ...(progress !== undefined && { progress }),
      ...(idle && { idle }),
    };
  }
  return {
    uid,
    state: 'ENDED',
    ...(facts && { facts }),
    ending: {
      cause: observation.cause ?? 'lost',
      exitCode: observation.exitCode ?? null,
      signal: observation.signal ?? null,
      message: observation.message ?? '',
      hostFault: observation.hostFault ?? false,
      stdoutBytes: observation.stdoutBytes ?? null,
      stderrBytes: observation.stderrBytes ?? null,
      result: observation.result,
      unstored: observation.unstored,
      held: observation.held,
    },
  };
}
