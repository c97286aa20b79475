/**
 * Random mutations on a live state with a real SQLite below it: after every one the invariants
 * hold, and what a restart reads back is what was live.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { ended, joining, liveParts, seen } from '../../test/support/testState.ts';
import { pendingByClass, waitingByClass } from '../../test/support/classCounts.ts';
import { bandOf, takePeople } from '../../test/support/peopleSteps.ts';
import { RESEAL, step, submissionOf, type Step } from '../../test/support/randomSteps.ts';
import { checkInvariants } from '../../test/support/stateInvariants.ts';
import { TestState } from '../../test/support/testState.ts';
import { DEFAULT_POLICY, plan } from '../core/schedule/plan.ts';
import { PlannerView } from '../core/schedule/view.ts';
import { freePool } from '../core/placement/admission.ts';
import { Capacity, claimOf } from '../core/placement/capacity.ts';
import type { Claim } from '../model/claim.ts';
import { attemptUid, type TaskId } from '../model/ids.ts';
import type { Store } from '../store/contract.ts';
import { openSqlite } from '../store/dialects/sqlite.ts';
import { encodeBatch } from '../store/encode.ts';
import { requestOf } from './requests.ts';
import { State } from './state.ts';

const folder = mkdtempSync(join(tmpdir(), 'drover-rebuild-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
/** Every commit waits for the disk. */
const RUNS = process.env['SOAK'] === '1' ? 1000 : 30;

const BY = { by: 'ann', tenant: 'default' };
const PRICED = { ...freePool('default'), deviceHourMicros: 3_600_000, cpuHourMicros: 36_000 };

class Run {
  readonly file = join(folder, `${files++}.db`);
  store!: Store;
  it!: TestState;
  view = new PlannerView();
  #uids = 0;

  async boot(): Promise<void> {
    this.store = openSqlite({ file: this.file, cacheBytes: 1 << 20, checkpointPages: 1000 });
    const nowMs = this.it?.nowMs ?? 1000;
    this.it = new TestState(new State(await this.store.boot(nowMs, 'c0test'), { pools: [PRICED] }));
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
        it.apply(submissionOf(step));
        if (step.pick % 10 === 0) it.apply(RESEAL);
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
      case 'priority':
        if (job) it.apply(bandOf(job, step.pick));
        return;
      case 'people':
        return takePeople(it, step.pick);
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
        if (worker) it.apply({ kind: 'drain', worker, draining: step.pick % 2 === 0, ...BY });
        return;
      case 'preempt':
        return this.#preempt(step.pick);
      case 'withdraw': {
        const owner = one(state.nominations)?.claim.owner;
        if (owner) it.apply({ kind: 'withdraw', owner, reason: 'no more' });
        return;
      }
      case 'take-over':
        return this.#takeOver();
      case 'charge':
        it.apply({ kind: 'charge', attempts: [...state.attempts.keys()] });
        return;
      case 'budget':
        return this.#budget(step);
      default:
        this.#tokens(step);
    }
  }

  /** Nominates some waiting job for the place of whatever runs on a worker. */
  #preempt(pick: number): void {
    const { state } = this.it;
    const worker = [...state.workers.values()][pick % Math.max(1, state.workers.size)];
    const waiting = [...state.jobs.values()].filter(({ counts }) => counts.PENDING > 0);
    const live = waiting[pick % Math.max(1, waiting.length)];
    if (!worker || !live) return;
    const empty = new Capacity(worker.worker.resources);
    for (const port of worker.capacity.portsTaken) empty.portsTaken.add(port);
    const { resources } = requestOf(live.job);
    const gang = live.job.spec.shape.kind === 'gang';
    const tasks = live.tasks.filter(({ state: now }) => now === 'PENDING');
    if (gang && tasks.length < live.tasks.length) return;
    const members = (gang ? tasks : tasks.slice(0, 1)).flatMap((task) => {
      const fit = empty.fit(resources);
      if (!fit.fits) return [];
      const uid = attemptUid(task.id, task.attempts + 1, `e${this.#uids++}`);
      const claim = claimOf(uid, worker.worker.id, resources, fit);
      empty.take(claim);
      return [
        { task: task.id, version: task.version, claim: { ...claim, state: 'NOMINATED' as const } },
      ];
    });
    if (members.length === 0 || (gang && members.length < tasks.length)) return;
    const { id: job, round } = live.job;
    const victims = [...worker.attempts.keys()].map((uid) => ({ uid }));
    this.it.apply({ kind: 'preempt', job, round, tasks: members, victims, reason: 'more urgent' });
  }

  /** Assigns what is nominated where its victims have gone. */
  #takeOver(): void {
    const { state } = this.it;
    for (const { live, task, claim } of [...state.nominations.values()]) {
      if (live.job.spec.shape.kind === 'gang') continue;
      const held = { ...claim, state: 'HELD' as const };
      const tasks = [{ task: task.id, version: task.version, claim: held }];
      this.it.apply({ kind: 'assign', job: live.job.id, round: live.job.round, tasks });
    }
  }

  #budget(step: Step & { do: 'budget' }): void {
    const user = step.pick % 2 === 0 ? 'ann' : '';
    if (step.pick % 5 === 0) {
      this.it.apply({ kind: 'delete-budget', tenant: 'default', user, by: 'op' });
      return;
    }
    const { devices, micros, mode } = step;
    const none = { deviceHoursPerDay: null, deviceHoursPerMonth: null, microsPerMonth: null };
    const limits = { ...none, deviceMillis: devices, microsPerDay: micros };
    const budget = { tenant: 'default', user, weight: 1, mode, atLimit: 'finish' as const };
    this.it.apply({ kind: 'set-budget', budget: { ...budget, ...limits }, by: 'op' });
  }

  #tokens(step: Step): void {
    const [token] = this.it.state.tokensByHash.values();
    if (step.do === 'revoke' && token)
      this.it.apply({ kind: 'revoke-token', token: token.id, by: 'ann' });
    if (step.do !== 'token') return;
    const hash = `t${this.it.nowMs}`;
    const rest = { name: '', tenant: 'a', user: 'u', pool: 'p', maxLiveWorkers: 1 };
    const more = { scopes: ['jobs:read' as const], expiresAtMs: 99 };
    const made = { kind: 'join' as const, hash, ...rest, ...more };
    this.it.apply({ kind: 'create-token', by: 'ann', token: made });
  }

  /** As the schedule loop does it. */
  #plan(): void {
    const { state, nowMs } = this.it;
    this.view.update(structuredClone(state.deltas.take(state, 0)));
    const made = plan(this.view, nowMs, () => `f${this.#uids++}`, DEFAULT_POLICY);
    for (const withdrawal of made.withdrawals) {
      const { kind } = this.it.apply({ kind: 'withdraw', ...withdrawal });
      if (kind !== 'done') state.deltas.claims.add(withdrawal.owner);
    }
    for (const placement of made.placements) {
      const { kind } = this.it.apply({ kind: 'assign', ...placement });
      if (kind !== 'done') this.#correct(placement);
    }
    for (const preemption of made.preemptions) {
      const { kind } = this.it.apply({ kind: 'preempt', ...preemption });
      if (kind === 'done') continue;
      this.#correct(preemption);
      for (const { uid } of preemption.victims) state.deltas.claims.add(uid);
    }
  }

  /** As the schedule loop does it: refused by a budget the planner did not know. */
  #correct({ tasks }: { tasks: { task: TaskId; claim: Claim }[] }): void {
    const { state } = this.it;
    for (const { task, claim } of tasks) {
      const found = state.task(task);
      if (found) state.deltas.tasks.add(found.task);
      state.deltas.claims.add(claim.owner);
      const nominated = state.nominations.get(task);
      if (nominated) state.deltas.claims.add(nominated.claim.owner);
    }
  }

  /** The planner's copy, fed by deltas, is the copy a new planner would be given. */
  #checkView(): void {
    const { state } = this.it;
    this.view.update(structuredClone(state.deltas.take(state, 0)));
    const { reservations } = this.view;
    for (const kept of reservations.values()) reservations.lift(kept);
    const free = [...this.view.fleet.workers()].map((each) => [
      each.info.id,
      each.capacity.cpuFree,
    ]);
    const truly = [...state.workers].map(([id, { capacity }]) => [id, capacity.cpuFree]);
    for (const kept of reservations.values()) reservations.lay(kept);
    expect(new Map(free as [string, number][])).toEqual(new Map(truly as [string, number][]));
    const pending = [...state.jobs.values()]
      .filter(({ waitsFor }) => !waitsFor)
      .map(({ counts }) => counts.PENDING);
    expect(this.view.pendingCount()).toBe(pending.reduce((a, b) => a + b, 0));
    expect(waitingByClass(this.view)).toEqual(pendingByClass(state));
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
