/**
 * The agent: says what it sees, does what it is told, and ends its attempts when nobody has
 * answered for too long. All effects are passed in, so the simulator runs this very code.
 */
import { sleep, type Clock, type Timer } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import type {
  JoinReply,
  JoinRequest,
  SyncReply,
  SyncRequest,
  Timers,
  TunnelOrder,
} from '../protocol/agent.ts';
import { describe } from './identity.ts';
import type { Report } from './reports.ts';
import type { Runtime } from './runtimes/contract.ts';

export interface AgentTransport {
  join(joinToken: string, request: JoinRequest): Promise<JoinReply>;
  sync(workerToken: string, request: SyncRequest): Promise<SyncReply>;
}

/** Kept on disk, so that a restarted agent is the same worker. */
export interface Identity {
  worker: string;
  token: string;
  clusterId: string;
  /** How often an agent has started on this identity: orders its syncs after all earlier ones. */
  starts: number;
  /** What the controller was told of the machine, to tell it again when it has changed. */
  told?: string;
}

export interface IdentityFile {
  load(): Identity | null;
  /** On disk when it returns. */
  save(identity: Identity): void;
}

export interface AgentOptions {
  transport: AgentTransport;
  runtime: Runtime;
  identityFile: IdentityFile;
  registration: JoinRequest;
  /** Null: the identity on disk is all there is. */
  joinToken: string | null;
  clock: Clock;
  random: Random;
  log: Log;
  /** What else is to be told, of its cache and its health; absent: nothing. */
  report?: Report;
  onTunnel: (order: TunnelOrder) => void;
  onCheckpoint?: (uid: string) => void;
  /** Attempts have begun, ended or changed: for the spool. */
  onChange?: () => void;
  /** Called once when the worker is registered, or cannot ever be. */
  onJoined?: (worker: string) => void;
  onRefused?: (error: DroverError) => void;
}

export interface Agent {
  /** Tells whether the controller has been heard of lately, for people. */
  status(): { worker: string | null; lastContactBootMs: number | null; attempts: number };
  close(): Promise<void>;
}

const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 5000;
/** So long it starts attempts without a look at anything else. */
const START_SLICE_MS = 20;
/** And so long it then looks at everything else: a round trip takes several turns. */
const START_PAUSE_MS = 5;
/** The agent looks this often whether a lease of its own has run out. */
const LEASE_CHECK_MS = 1000;

/** A join token that is over does not end a worker that has its own. */
const REFUSALS = new Set<string>(['UNAUTHENTICATED', 'PERMISSION_DENIED', 'TOO_MANY']);

export function startAgent(options: AgentOptions): Agent {
  const { transport, runtime, clock, random, log } = options;
  let identity: Identity | null = null;
  let closed = false;
  let seq = 0;
  let failures = 0;
  let timer: Timer | null = null;
  let leaseTimer: Timer | null = null;
  let seen = { epoch: 0, generation: 0 };
  let contactBootMs: number | null = null;
  let timers: Timers | null = null;
  /**
   * The newest sync that is under way; an older one's reply still counts if it is newer by
   * generation.
   */
  let newest = 0;
  let sendSoon = false;
  const description = describe(options.registration);
  const saved = options.identityFile.load();
  const begun = !saved && runtime.list().length === 0 && { fresh: random.hex(8) };
  /** Joins once more although it is a worker already; not if that is refused. */
  let tellAgain = saved !== null && saved.told !== description && options.joinToken !== null;
  if (saved) {
    identity = { ...saved, starts: saved.starts + 1 };
    options.identityFile.save(identity);
    options.onJoined?.(identity.worker);
  }
  for (const source of [runtime, options.report]) source?.onChange(() => changed());
  leaseTimer = clock.setTimer(LEASE_CHECK_MS, checkLeases);
  clock.soon(() => void cycle());

  /** One exchange, and then the next. A newer one may overtake this one while it is parked. */
  async function cycle(): Promise<void> {
    if (closed) return;
    const mine = ++newest;
    try {
      if (!identity) await join();
      else if (tellAgain) await joinAgain();
      else await exchange(identity);
      failures = 0;
      if (mine === newest) next(0);
    } catch (error) {
      if (mine === newest) failed(error);
    }
  }

  function next(delayMs: number): void {
    if (closed) return;
    timer?.cancel();
    timer = null;
    if (delayMs > 0) timer = clock.setTimer(delayMs, () => void cycle());
    else if (!sendSoon) {
      sendSoon = true;
      clock.soon(() => {
        sendSoon = false;
        void cycle();
      });
    }
  }

  /** Something to report: a parked sync is overtaken; one that waits to retry goes on waiting. */
  function changed(): void {
    options.onChange?.();
    if (identity && failures === 0) next(0);
  }

  async function join(): Promise<void> {
    if (options.joinToken === null) {
      throw new DroverError('UNAUTHENTICATED', 'this agent has no worker token and no join token', {
        hint: 'start it with: drover agent --join URL TOKEN',
      });
    }
    const reply = await transport.join(options.joinToken, { ...options.registration, ...begun });
    if (closed) return;
    const { worker, token, clusterId } = reply;
    identity = { worker, token, clusterId, starts: 1, told: description };
    tellAgain = false;
    options.identityFile.save(identity);
    timers = reply.timers;
    options.onJoined?.(reply.worker);
  }

  /** Its resources, address or terms have changed since: the same worker, described anew. */
  async function joinAgain(): Promise<void> {
    try {
      await join();
    } catch (error) {
      if (!(error instanceof DroverError) || !REFUSALS.has(error.code)) throw error;
      tellAgain = false;
      log.warn({ problem: error.message }, 'what changed on this machine could not be told');
    }
  }

  async function exchange(as: Identity): Promise<void> {
    const sentBootMs = clock.bootMs();
    const news = options.report?.news(as.worker, seen.epoch);
    const reply = await transport.sync(as.token, {
      worker: as.worker,
      bootId: options.registration.bootId,
      start: as.starts,
      seq: ++seq,
      epoch: seen.epoch,
      observed: runtime.list().map((attempt) => attempt.observation),
      wait: true,
      ...news?.parts,
    });
    news?.told(reply.epoch);
    if (closed || identity !== as) return;
    if (reply.clusterId !== as.clusterId)
      throw new Error(`cluster ${reply.clusterId} answered instead of ${as.clusterId}`);
    const older =
      reply.epoch < seen.epoch ||
      (reply.epoch === seen.epoch && reply.generation <= seen.generation);
    if (older) return;
    seen = { epoch: reply.epoch, generation: reply.generation };
    contactBootMs = sentBootMs;
    timers = reply.timers;
    await follow(reply, sentBootMs);
  }

  async function follow(reply: SyncReply, sentBootMs: number): Promise<void> {
    const marginMs = reply.timers.killMarginMs;
    for (const order of reply.stop) runtime.stop(order);
    for (const uid of reply.acknowledged) runtime.forget(uid);
    renewLeases(sentBootMs - marginMs);
    for (const order of reply.tunnels) options.onTunnel(order);
    for (const uid of reply.checkpoint ?? []) options.onCheckpoint?.(uid);
    if (await startAll(reply, sentBootMs - marginMs)) renewLeases(sentBootMs - marginMs);
  }

  function renewLeases(leaseBaseMs: number): void {
    const live = runtime.list().filter((one) => one.observation.state !== 'ENDED');
    if (live.length === 0) return;
    runtime.renewLease(
      live.map(({ observation, attemptLeaseMs }) => ({
        uid: observation.uid,
        killAtBootMs: leaseBaseMs + attemptLeaseMs,
      })),
    );
  }

  /**
   * Starting takes a machine milliseconds each, in which output and exits must get through too.
   * False when there was nothing to start, or a newer reply has taken over.
   */
  async function startAll(reply: SyncReply, leaseBaseMs: number): Promise<boolean> {
    if (reply.desired.length === 0) return false;
    let begunBootMs = clock.bootMs();
    for (const order of reply.desired) {
      let nowBootMs = clock.bootMs();
      if (nowBootMs - begunBootMs >= START_SLICE_MS) {
        options.onChange?.();
        await sleep(clock, START_PAUSE_MS);
        // A newer reply has come meanwhile: it lists what is still to be started.
        if (closed || reply.epoch !== seen.epoch || reply.generation !== seen.generation)
          return false;
        nowBootMs = clock.bootMs();
        begunBootMs = nowBootMs;
      }
      // A reply that lay unread (the agent was stopped, the machine slept) may be older than the
      // lease it gives: the task may run elsewhere by now.
      const killAtBootMs = leaseBaseMs + order.attemptLeaseMs;
      const late = nowBootMs >= killAtBootMs - order.graceMs;
      if (!late) runtime.start(order, killAtBootMs);
    }
    options.onChange?.();
    return true;
  }

  /** Asks nicely one grace before the watchdog would not: nobody has answered for too long. */
  function checkLeases(): void {
    if (closed) return;
    leaseTimer = clock.setTimer(LEASE_CHECK_MS, checkLeases);
    if (contactBootMs === null || timers === null) return;
    const silentMs = clock.bootMs() - contactBootMs;
    for (const { observation, attemptLeaseMs, graceMs } of runtime.list()) {
      if (observation.state === 'ENDED' || observation.state === 'STOPPING') continue;
      if (silentMs < attemptLeaseMs - timers.killMarginMs - graceMs) continue;
      log.warn({ attempt: observation.uid, silentMs }, 'no contact for too long: stopping');
      runtime.stop({ uid: observation.uid, cause: 'lost', graceMs });
    }
  }

  function failed(error: unknown): void {
    if (closed) return;
    const code = error instanceof DroverError ? error.code : null;
    if (code === 'STALE') {
      // Somebody else syncs for this worker, or an older call of ours came late: not in a circle.
      next(FIRST_RETRY_MS);
      return;
    }
    failures++;
    if (code === 'UNAUTHENTICATED' && error instanceof DroverError) {
      // The worker was lost, revoked or superseded: what runs here is stopped by the next one's
      // sync.
      if (options.joinToken === null || !identity) options.onRefused?.(error);
      identity = null;
    }
    const longest = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10));
    const delayMs = Math.ceil(longest * (0.5 + random.next() / 2));
    const problem = error instanceof Error ? error.message : String(error);
    log.warn({ worker: identity?.worker, delayMs, problem }, 'no sync; trying again');
    next(delayMs);
  }

  return {
    status: () => ({
      worker: identity?.worker ?? null,
      lastContactBootMs: contactBootMs,
      attempts: runtime.list().length,
    }),
    async close() {
      closed = true;
      timer?.cancel();
      leaseTimer?.cancel();
      await runtime.close();
    },
  };
}
