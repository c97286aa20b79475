/** What an agent's test puts around it: a controller that speaks when told to, and a machine. */
import type { Runtime } from '../../src/agent/runtimes/contract.ts';
import type {
  AttemptOrder,
  JoinReply,
  Observation,
  StopOrder,
  SyncReply,
  SyncRequest,
} from '../../src/protocol/agent.ts';
import type { ManualClock } from './manualClock.ts';

const TIMERS = {
  workerLeaseMs: 30_000,
  attemptLeaseMs: 60_000,
  killMarginMs: 15_000,
  longPollMs: 10_000,
};

interface Call {
  token: string;
  request: SyncRequest;
  answer: (reply?: Partial<SyncReply>) => Promise<void>;
  refuse: (error: Error) => Promise<void>;
}

/** A controller that says nothing by itself. */
export class FakeController {
  readonly clock: ManualClock;
  joins: { token: string; done: PromiseWithResolvers<JoinReply> }[] = [];
  syncs: Call[] = [];
  generation = 0;

  constructor(clock: ManualClock) {
    this.clock = clock;
  }

  join(token: string): Promise<JoinReply> {
    const done = Promise.withResolvers<JoinReply>();
    this.joins.push({ token, done });
    return done.promise;
  }

  sync(token: string, request: SyncRequest): Promise<SyncReply> {
    const done = Promise.withResolvers<SyncReply>();
    this.syncs.push({
      token,
      request: structuredClone(request),
      answer: async (reply = {}) => {
        done.resolve(this.reply(reply));
        await this.clock.settle();
      },
      refuse: async (error) => {
        done.reject(error);
        await this.clock.settle();
      },
    });
    return done.promise;
  }

  reply(more: Partial<SyncReply> = {}): SyncReply {
    return {
      clusterId: 'c1',
      epoch: 5,
      generation: ++this.generation,
      desired: [],
      stop: [],
      acknowledged: [],
      tunnels: [],
      timers: TIMERS,
      ...more,
    };
  }

  async admit(worker = 'w1'): Promise<void> {
    const token = `drw_${worker}`;
    const { done } = this.joins.at(-1)!;
    done.resolve({ worker, token, clusterId: 'c1', epoch: 5, timers: TIMERS });
    await this.clock.settle();
  }

  /** The newest sync. */
  get last(): Call {
    const call = this.syncs.at(-1);
    if (!call) throw new Error('no sync yet');
    return call;
  }
}

/** A machine on which everything happens at once. */
export class FakeRuntime implements Runtime {
  readonly attempts = new Map<string, Observation & { leaseMs: number; graceMs: number }>();
  readonly done: string[] = [];
  leases: { uid: string; killAtBootMs: number }[] = [];
  changed = (): void => undefined;

  list() {
    return [...this.attempts.values()].map(({ leaseMs, graceMs, ...observation }) => ({
      observation,
      attemptLeaseMs: leaseMs,
      graceMs,
    }));
  }
  start({ uid, attemptLeaseMs, graceMs }: AttemptOrder): void {
    this.done.push(`start ${uid}`);
    this.attempts.set(uid, { uid, state: 'RUNNING', leaseMs: attemptLeaseMs, graceMs });
  }
  stop({ uid, cause }: StopOrder): void {
    this.done.push(`stop ${uid} ${cause}`);
    const attempt = this.attempts.get(uid);
    if (attempt) attempt.state = 'STOPPING';
  }
  forget(uid: string): void {
    this.done.push(`forget ${uid}`);
    this.attempts.delete(uid);
  }
  renewLease(deadlines: { uid: string; killAtBootMs: number }[]): void {
    this.leases = deadlines;
  }
  onChange(changed: () => void): void {
    this.changed = changed;
  }
  async close(): Promise<void> {
    this.done.push('close');
  }
  /** Something happens on the machine. */
  see(uid: string, state: Observation['state']): void {
    this.attempts.set(uid, { uid, state, leaseMs: 60_000, graceMs: 10_000 });
    this.changed();
  }
}
