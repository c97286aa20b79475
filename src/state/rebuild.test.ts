/**
 * Random mutations on a live state with a real SQLite below it: after every one the invariants
 * hold, and what a restart reads back is what was live.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { ended, joining, liveParts, seen, submission } from '../../test/support/testState.ts';
import { TestState } from '../../test/support/testState.ts';
import { Capacity } from '../core/placement/capacity.ts';
import { countTasks } from '../core/lifecycle/job.ts';
import { planFirstFit } from '../core/schedule/firstFit.ts';
import { PlannerView } from '../core/schedule/view.ts';
import { END_CAUSES } from '../model/attempt.ts';
import type { Shape } from '../model/job.ts';
import type { Store } from '../store/contract.ts';
import { openSqlite } from '../store/dialects/sqlite.ts';
import { encodeBatch } from '../store/encode.ts';
import { State } from './state.ts';

const folder = mkdtempSync(join(tmpdir(), 'drover-rebuild-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
/** Every commit waits for the disk. */
const RUNS = process.env['SOAK'] === '1' ? 1000 : 30;

const jobFields = fc.record({
  shape: fc.constantFrom<Shape>(
    { kind: 'single' },
    { kind: 'array', indices: [5, 0, 2], limit: 2 },
    { kind: 'gang', size: 2 },
  ),
  retries: fc.nat(2),
  maxInterruptions: fc.nat(2),
  timeLimitMs: fc.constantFrom(0, 10),
  resources: fc.record({
    cpuMillis: fc.constantFrom(1000, 3000),
    ports: fc.nat(2),
    device: fc.constantFrom(null, { share: 500 }, { count: 2 }),
  }),
});
const pick = fc.nat(100);
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('submit' as const), fields: jobFields, pick }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('plan' as const) }) },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('observe' as const),
      pick,
      what: fc.constantFrom('STARTING', 'RUNNING', 'STOPPING', 'ok', ...END_CAUSES),
      complete: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('join' as const), pick, boot: fc.nat(1) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('cancel', 'give-up', 'stop', 'lose', 'drain', 'token', 'revoke'),
      pick,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('move' as const),
      pick,
      move: fc.constantFrom('suspect', 'recover', 'lose'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('commit' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

class Run {
  readonly file = join(folder, `${files++}.db`);
  store!: Store;
  it!: TestState;
  view = new PlannerView();
  #uids = 0;

  async boot(): Promise<void> {
    this.store = openSqlite({ file: this.file, cacheBytes: 1 << 20, checkpointPages: 1000 });
    const nowMs = this.it?.nowMs ?? 1000;
    this.it = new TestState(new State(await this.store.boot(nowMs, 'c0test')));
    this.it.nowMs = nowMs;
    this.view = new PlannerView();
  }

  async commit(): Promise<void> {
    const { state } = this.it;
    const changes = state.takeChanges();
    await this.store.commit(encodeBatch(changes, state.epoch, state.seq));
    state.evict(changes);
  }

  /** Everything committed is there again, and nothing else. */
  async restart(): Promise<void> {
    await this.commit();
    const before = forRebuild(this.it.state);
    const { seq } = this.it.state;
    this.#checkView();
    await this.store.close();
    await this.boot();
    expect(forRebuild(this.it.state)).toEqual(before);
    expect(this.it.state.seq).toBe(seq);
    expect(this.it.state.changes.empty).toBe(true);
  }

  take(step: Step): void {
    const { it } = this;
    const { state } = it;
    it.nowMs += 700;
    const one = <Value>(map: ReadonlyMap<unknown, Value>): Value | undefined =>
      [...map.values()][('pick' in step ? step.pick : 0) % Math.max(1, map.size)];
    const attempt = one(state.attempts);
    const worker = one(state.workers)?.worker.id;
    const job = one(state.jobs)?.job.id;
    switch (step.do) {
      case 'submit': {
        const key = step.pick % 3 === 0 ? `k${step.pick}` : null;
        it.apply(submission([step.fields], { idempotencyKey: key, bodyHash: key }));
        return;
      }
      case 'plan':
        return this.#plan();
      case 'observe': {
        if (!attempt) return;
        const { what, complete } = step;
        const is = (name: string) => name === what;
        const observed = is('ok')
          ? ended(attempt.uid, 'exited', { exitCode: 0 })
          : is('STARTING') || is('RUNNING') || is('STOPPING')
            ? seen(attempt.uid, what as 'RUNNING')
            : ended(attempt.uid, what as 'exited', { exitCode: what === 'exited' ? 3 : null });
        it.observe(attempt.worker, [observed], complete);
        return;
      }
      case 'join': {
        const machine = `m${step.pick % 3}`;
        it.apply(joining(machine, { bootId: `b${step.boot}`, tokenHash: `h${it.nowMs}` }));
        return;
      }
      case 'move':
        if (worker) it.apply({ kind: 'move-worker', worker, move: step.move, reason: 'silent' });
        return;
      case 'cancel':
        if (job) it.apply({ kind: 'cancel', job, by: 'ann' });
        return;
      case 'give-up':
        if (job) it.apply({ kind: 'give-up', job, reason: 'late' });
        return;
      case 'stop': {
        if (!attempt) return;
        const attempts = [{ uid: attempt.uid, version: attempt.version }];
        it.apply({ kind: 'stop', attempts, cause: 'timed-out', reason: 'over' });
        return;
      }
      case 'lose':
        if (attempt) it.apply({ kind: 'lose', attempts: [attempt.uid], reason: 'silent' });
        return;
      case 'drain':
        if (worker) it.apply({ kind: 'drain', worker, draining: step.pick % 2 === 0, by: 'ann' });
        return;
      default:
        this.#tokens(step);
    }
  }

  #tokens(step: Step): void {
    const [token] = this.it.state.tokensByHash.values();
    if (step.do === 'revoke' && token) this.it.apply({ kind: 'revoke-token', token: token.id });
    if (step.do !== 'token') return;
    const hash = `t${this.it.nowMs}`;
    const rest = { name: '', tenant: 'a', user: 'u', pool: 'p', maxLiveWorkers: 1 };
    const more = { scopes: ['jobs:read' as const], expiresAtMs: 99 };
    this.it.apply({ kind: 'create-token', token: { kind: 'join', hash, ...rest, ...more } });
  }

  /** As the schedule loop does it. */
  #plan(): void {
    const { state, nowMs } = this.it;
    this.view.update(structuredClone(state.deltas.take(state)));
    const plan = planFirstFit(this.view, nowMs, () => `f${this.#uids++}`);
    for (const placement of plan.placements) {
      expect(this.it.apply({ kind: 'assign', ...placement })).toEqual({ kind: 'done' });
    }
  }

  /** The planner's copy, fed by deltas, is the copy a new planner would be given. */
  #checkView(): void {
    const { state } = this.it;
    this.view.update(structuredClone(state.deltas.take(state)));
    const free = [...this.view.workers].map(([id, { capacity }]) => [id, capacity.cpuFree]);
    const truly = [...state.workers].map(([id, { capacity }]) => [id, capacity.cpuFree]);
    expect(new Map(free as [string, number][])).toEqual(new Map(truly as [string, number][]));
    const pending = [...state.jobs.values()].flatMap(({ counts }) => counts.PENDING);
    expect(this.view.pendingCount()).toBe(pending.reduce((a, b) => a + b, 0));
  }
}

/** Where rank 0 listens is needed, and known again, only while rank 0 lives. */
function forRebuild(state: State) {
  const parts = liveParts(state);
  for (const live of parts.jobs) {
    if (!state.jobs.get(live.job.id)?.attempts.has(0)) live.master = null;
  }
  return structuredClone(parts);
}

function checkInvariants(state: State): void {
  for (const { worker, capacity, attempts } of state.workers.values()) {
    const anew = new Capacity(worker.resources);
    for (const claim of state.claims.values()) if (claim.worker === worker.id) anew.take(claim);
    expect(capacity.cpuFree).toBe(anew.cpuFree);
    expect(capacity.deviceFree).toEqual(anew.deviceFree);
    expect(capacity.portsTaken).toEqual(anew.portsTaken);
    expect(Math.min(capacity.cpuFree, capacity.memoryFree, ...capacity.deviceFree)).toBeGreaterThan(
      -1,
    );
    for (const uid of attempts.keys()) expect(state.attempts.get(uid)?.worker).toBe(worker.id);
  }
  expect([...state.claims.keys()].toSorted()).toEqual([...state.attempts.keys()].toSorted());
  for (const live of state.jobs.values()) {
    expect(live.counts).toEqual(countTasks(live.tasks));
    const liveTasks = live.counts.PENDING + live.counts.ASSIGNED + live.counts.RUNNING;
    expect(live.job.endedAtMs === null).toBe(liveTasks > 0);
    if (live.job.endedAtMs !== null) expect(live.attempts.size).toBe(0);
    for (const task of live.tasks) {
      const attempt = live.attempts.get(task.index);
      if (attempt) expect(attempt.n).toBe(task.attempts);
      if (attempt) expect(attempt.state).not.toBe('ENDED');
      const placed = task.state === 'ASSIGNED' || (task.state === 'RUNNING' && !task.roundDone);
      expect(attempt !== undefined).toBe(placed);
    }
  }
  const owners = [...state.attempts.values()].map(({ task }) => task);
  expect(new Set(owners).size).toBe(owners.length);
}

test('any history keeps the invariants, and a restart brings back what was live', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async (steps) => {
      const run = new Run();
      await run.boot();
      run.it.join('m0');
      for (const one of steps) {
        if (one.do === 'commit') await run.commit();
        else if (one.do === 'restart') await run.restart();
        else run.take(one);
        checkInvariants(run.it.state);
      }
      await run.restart();
      await run.store.close();
    }),
    { numRuns: RUNS },
  );
}, 300_000);
