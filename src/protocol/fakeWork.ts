/** How the fake Coordinator's jobs come to run: placed at a sync, ended by an observation. */
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import type { EventKind } from '../model/event.ts';
import type { LogAck, LogChunk, Observation, OutputStream, SyncReply } from './agent.ts';
import { orderOf, type FakeJob, type FakeTask } from './fakeJobs.ts';
import type { WorkerView } from './fleet.ts';
import type { AttemptView, EventView, TaskView } from './jobs.ts';

export class FakeWork {
  readonly jobs = new Map<string, FakeJob>();
  readonly #clock: Clock;
  readonly #random: Random;
  #eventSeq = 0;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  observe(seen: Observation): void {
    const found = this.#attempt(seen.uid);
    if (!found || found.attempt.state === 'ENDED') return;
    const { job, task, attempt } = found;
    attempt.state = seen.state;
    attempt.startedAtMs ??= this.#clock.now();
    if (seen.state !== 'ENDED') {
      task.view.state = 'RUNNING';
      task.view.startedAtMs ??= attempt.startedAtMs;
      return;
    }
    const code = seen.exitCode ?? null;
    attempt.endedAtMs = this.#clock.now();
    attempt.cause = seen.cause ?? 'exited';
    attempt.exitCode = code;
    attempt.signal = seen.signal ?? null;
    attempt.message = seen.message ?? '';
    const cancelled = attempt.cause === 'cancelled';
    const state = cancelled ? 'CANCELLED' : code === 0 ? 'SUCCEEDED' : 'FAILED';
    this.end(job, task, state, cancelled ? 'cancelled' : `exit code ${code}`, code);
  }

  fill(reply: SyncReply, worker: WorkerView, observed: Set<string>): void {
    reply.desired = [];
    reply.stop = [];
    reply.acknowledged = [];
    for (const job of this.jobs.values()) {
      for (const task of job.tasks) {
        if (task.view.state === 'PENDING' && !worker.draining) this.#assign(job, task, worker.id);
        for (const attempt of task.attempts) {
          if (attempt.worker !== worker.id) continue;
          const { uid } = attempt;
          if (attempt.state === 'ENDED' && observed.has(uid)) reply.acknowledged.push(uid);
          if (attempt.state === 'ENDED') continue;
          if (!observed.has(uid)) reply.desired.push(orderOf(job, task, attempt));
          else if (job.cancelRequestedAtMs !== null) {
            reply.stop.push({ uid, cause: 'cancelled', graceMs: job.spec.graceMs });
          }
        }
      }
    }
  }

  append(chunk: LogChunk): LogAck {
    const found = this.#attempt(chunk.uid);
    if (!found) throw new DroverError('STALE', `the attempt ${chunk.uid} is not known`);
    const { job, task, attempt } = found;
    const key = `${chunk.uid}/${chunk.stream}`;
    const have = job.offsets.get(key) ?? 0;
    const end = chunk.offset + chunk.bytes.length;
    if (chunk.offset > have || end <= have) return { ...pick(chunk), offset: have };
    const bytes = Buffer.from(chunk.bytes.subarray(have - chunk.offset));
    job.offsets.set(key, end);
    const text = bytes.toString('utf8');
    job.logs.push({
      seq: job.logs.length + 1,
      task: task.view.id,
      index: task.view.index,
      attempt: attempt.n,
      stream: chunk.stream as OutputStream,
      offset: have,
      atMs: chunk.atMs,
      ...(Buffer.from(text).equals(bytes) ? { text } : { base64: bytes.toString('base64') }),
    });
    return { ...pick(chunk), offset: end };
  }

  end(job: FakeJob, task: FakeTask, state: TaskView['state'], why: string, code: number | null) {
    Object.assign(task.view, { state, reason: why, exitCode: code, worker: null });
    task.view.endedAtMs = this.#clock.now();
    this.event(job, 'task.ended', task.view.id, { reason: why, exitCode: code });
  }

  event(job: FakeJob, kind: EventKind, task: string | null, data: EventView['data']): void {
    const seq = ++this.#eventSeq;
    const base = { epoch: 1, seq, atMs: this.#clock.now(), kind, job: job.id, task, data };
    job.events.push({ ...base, attempt: null, worker: null, hash: null });
  }

  #attempt(uid: string): { job: FakeJob; task: FakeTask; attempt: AttemptView } | undefined {
    for (const job of this.jobs.values()) {
      for (const task of job.tasks) {
        const attempt = task.attempts.find((each) => each.uid === uid);
        if (attempt) return { job, task, attempt };
      }
    }
    return undefined;
  }

  #assign(job: FakeJob, task: FakeTask, worker: string): void {
    const n = ++task.view.attempts;
    Object.assign(task.view, { state: 'ASSIGNED', reason: `assigned to ${worker}`, worker });
    task.attempts.push({
      uid: this.#random.hex(16),
      task: task.view.id,
      n,
      round: 0,
      worker,
      state: 'ASSIGNED',
      cause: null,
      exitCode: null,
      signal: null,
      message: '',
      assignedAtMs: this.#clock.now(),
      startedAtMs: null,
      endedAtMs: null,
      facts: {},
      result: null,
      resultBytes: null,
      priceMicros: 0,
      chargedMicros: 0,
    });
    this.event(job, 'task.assigned', task.view.id, { worker });
  }
}

function pick({ uid, stream }: LogChunk): Pick<LogAck, 'uid' | 'stream'> {
  return { uid, stream };
}
