/**
 * A job's receipt: where it ran, what its time and money went into, what was lost by whose fault,
 * and what to do next. From rows alone, so that it says the same whenever it is asked for.
 */
import type { Attempt } from '../model/attempt.ts';
import { indexOfTask, type AttemptUid } from '../model/ids.ts';
import type { JobSpec, JobState } from '../model/job.ts';
import { USED } from '../model/metric.ts';
import { advise } from './receipt/advice.ts';
import { lostTime, type Loss } from './receipt/lost.ts';
import { lineOf, sentencesOf } from './receipt/sentences.ts';

interface ReceiptJob {
  id: string;
  name: string;
  state: JobState;
  /** How it ended. */
  reason: string;
  exitCode: number | null;
  createdAtMs: number;
  startedAtMs: number | null;
  endedAtMs: number | null;
  tasks: { total: number; succeeded: number };
  spec: JobSpec;
}

export interface ReceiptFacts {
  job: ReceiptJob;
  /** By task, oldest first. */
  attempts: readonly Attempt[];
  /** When they were asked to stop. */
  stoppingAtMs: ReadonlyMap<AttemptUid, number>;
  /** When their newest checkpoint was stored. */
  savedAtMs: ReadonlyMap<AttemptUid, number>;
  /** How many were stored in all. */
  checkpoints: number;
  workers: ReadonlyMap<string, ReceiptWorker>;
  /** False: there is more than was looked at. */
  complete: boolean;
  nowMs: number;
}

export interface ReceiptWorker {
  name: string;
  pool: string;
  /** Models of all devices it has. */
  devices: readonly string[];
}

/** Of all tasks together. */
interface ReceiptTime {
  waitingMs: number;
  startingMs: number;
  runningMs: number;
  stoppingMs: number;
}

interface Place {
  worker: string;
  name: string;
  pool: string;
  /** `2 x A100`; empty: none. */
  devices: string;
  attempts: number;
  ms: number;
}

export interface Receipt {
  job: string;
  name: string;
  state: JobState;
  reason: string;
  exitCode: number | null;
  createdAtMs: number;
  startedAtMs: number | null;
  endedAtMs: number | null;
  tasks: { total: number; succeeded: number };
  attempts: number;
  /** The longest first. */
  ranOn: Place[];
  time: ReceiptTime;
  /** The worst first. */
  lost: Loss[];
  costMicros: number;
  deviceMs: number;
  checkpoints: number;
  resumes: number;
  peakMemoryBytes: number | null;
  complete: boolean;
  /** What to do next, the most promising first. */
  next: string[];
  /** All of it in one line. */
  line: string;
  sentences: string[];
}

export function receiptOf(facts: ReceiptFacts): Receipt {
  const { attempts, job } = facts;
  const { spec, ...shown } = job;
  const sums = {
    ...shown,
    job: job.id,
    attempts: attempts.length,
    ranOn: placesOf(facts),
    time: timeOf(facts),
    lost: lostTime(facts),
    costMicros: sum(attempts, ({ chargedMicros }) => chargedMicros),
    deviceMs: sum(attempts, ({ chargedDeviceMs }) => chargedDeviceMs),
    checkpoints: facts.checkpoints,
    resumes: attempts.filter((attempt) => attempt.facts['resumed from'] !== undefined).length,
    peakMemoryBytes: peakMemory(attempts),
    complete: facts.complete,
  };
  const { id: _id, ...fields } = sums;
  const next = advise(fields, spec, attempts);
  const told = { ...fields, next };
  return { ...told, line: lineOf(told), sentences: sentencesOf(told) };
}

function placesOf({ attempts, workers, job, nowMs }: ReceiptFacts): Place[] {
  const places = new Map<string, Place>();
  for (const attempt of attempts) {
    const { worker } = attempt;
    const known = workers.get(worker);
    let place = places.get(worker);
    if (!place) {
      const { name = worker, pool = '' } = known ?? {};
      const devices = devicesOf(attempt, job.spec, known?.devices ?? []);
      place = { worker, name, pool, devices, attempts: 0, ms: 0 };
      places.set(worker, place);
    }
    place.attempts++;
    place.ms += (attempt.endedAtMs ?? nowMs) - attempt.assignedAtMs;
  }
  return [...places.values()].toSorted((a, b) => b.ms - a.ms);
}

/** As the agent told it; else what was asked for, by the model where the worker has one kind. */
function devicesOf({ facts }: Attempt, spec: JobSpec, models: readonly string[]): string {
  if (facts['devices']) return facts['devices'];
  const { device } = spec.resources;
  if (!device) return '';
  const [model = '', ...others] = new Set(models);
  const name = others.length === 0 && model ? model : device.models[0] || device.kind;
  if (device.share < 1000) return `${device.share / 1000} of ${name}`;
  return device.count === 1 ? name : `${device.count} x ${name}`;
}

function timeOf({ attempts, job, stoppingAtMs, nowMs }: ReceiptFacts): ReceiptTime {
  const time = { waitingMs: 0, startingMs: 0, runningMs: 0, stoppingMs: 0 };
  const tried = new Set<number>();
  let freeAtMs = job.createdAtMs;
  for (const attempt of attempts) {
    const index = indexOfTask(attempt.task);
    if (!tried.has(index)) freeAtMs = job.createdAtMs;
    tried.add(index);
    const endMs = attempt.endedAtMs ?? nowMs;
    const startMs = Math.min(attempt.startedAtMs ?? endMs, endMs);
    const stopMs = Math.min(endMs, Math.max(startMs, stoppingAtMs.get(attempt.uid) ?? endMs));
    time.waitingMs += Math.max(0, attempt.assignedAtMs - freeAtMs);
    time.startingMs += Math.max(0, startMs - attempt.assignedAtMs);
    time.runningMs += stopMs - startMs;
    time.stoppingMs += endMs - stopMs;
    freeAtMs = endMs;
  }
  const untried = job.tasks.total - tried.size;
  time.waitingMs += untried * Math.max(0, (job.endedAtMs ?? nowMs) - job.createdAtMs);
  return time;
}

function peakMemory(attempts: readonly Attempt[]): number | null {
  let peak: number | null = null;
  for (const { facts } of attempts) {
    const bytes = Number(facts[USED.peakMemoryBytes] ?? Number.NaN);
    if (Number.isFinite(bytes) && bytes > (peak ?? 0)) peak = bytes;
  }
  return peak;
}

function sum(attempts: readonly Attempt[], value: (attempt: Attempt) => number): number {
  let total = 0;
  for (const attempt of attempts) total += value(attempt);
  return total;
}
