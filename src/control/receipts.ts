/** Receipts: what is kept of a job, read and summed up. */
import { receiptOf, type ReceiptFacts, type ReceiptWorker } from '../core/receipt.ts';
import type { Clock } from '../lib/clock.ts';
import type { Attempt } from '../model/attempt.ts';
import { indexOfTask, type AttemptUid } from '../model/ids.ts';
import type { Device } from '../model/resources.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { JobView } from '../protocol/jobs.ts';
import type { ReceiptView } from '../protocol/receipt.ts';
import type { History, TenantHistory } from '../store/contract.ts';
import { decodeAttempt } from '../store/decode.ts';
import { endedJobView } from './views.ts';

/** A receipt of more says that it is not complete. */
const ATTEMPTS_LIMIT = 20_000;
const EVENTS_LIMIT = 20_000;
const PAGE = 500;
/** Workers whose names are looked up. */
const WORKERS_LIMIT = 500;

interface ReceiptOptions {
  history: History;
  clock: Clock;
  getJob: Coordinator['getJob'];
}

export function createReceipts({
  history,
  clock,
  getJob,
}: ReceiptOptions): Pick<Coordinator, 'receipt'> {
  return {
    receipt: async (who, id) => readReceipt(history, await getJob(who, id), clock.now()),
  };
}

/** Of a job whose end is committed; null: there is none. */
export async function receiptOfEnded(
  history: History,
  tenant: string,
  id: string,
): Promise<ReceiptView | null> {
  const row = await history.forTenant(tenant).job(id);
  if (!row || row.ended_at_ms === null) return null;
  return readReceipt(history, endedJobView(row), row.ended_at_ms);
}

async function readReceipt(history: History, view: JobView, nowMs: number): Promise<ReceiptView> {
  const rows = history.forTenant(view.tenant);
  const attempts = await readAttempts(rows, view.id);
  const { spec, tasks } = view;
  const job = {
    id: view.id,
    name: view.name,
    state: view.state,
    reason: view.endedAtMs === null ? '' : view.reason,
    exitCode: view.exitCode,
    createdAtMs: view.createdAtMs,
    startedAtMs: view.startedAtMs,
    endedAtMs: view.endedAtMs,
    tasks: { total: tasks.total, succeeded: tasks.succeeded },
    spec: spec!,
  };
  // Most jobs have neither, and need no look at their events.
  const eventful = spec!.checkpoint || attempts.some(({ stopCause }) => stopCause !== null);
  const found = eventful ? await readMoments(rows, view.id) : NO_MOMENTS;
  const workers = await readWorkers(history, attempts);
  const complete = found.complete && attempts.length < ATTEMPTS_LIMIT;
  return receiptOf({ job, attempts, workers, nowMs, ...found, complete });
}

async function readAttempts(rows: TenantHistory, job: string): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  let after: [number, number] = [-1, -1];
  while (attempts.length < ATTEMPTS_LIMIT) {
    const page = (await rows.attempts(job, after, PAGE)).map(decodeAttempt);
    attempts.push(...page);
    const last = page.at(-1);
    if (!last || page.length < PAGE) break;
    after = [indexOfTask(last.task), last.n];
  }
  return attempts;
}

type Moments = Pick<ReceiptFacts, 'stoppingAtMs' | 'savedAtMs' | 'checkpoints' | 'complete'>;

const NO_MOMENTS: Moments = {
  stoppingAtMs: new Map(),
  savedAtMs: new Map(),
  checkpoints: 0,
  complete: true,
};

async function readMoments(rows: TenantHistory, job: string): Promise<Moments> {
  const stoppingAtMs = new Map<AttemptUid, number>();
  const savedAtMs = new Map<AttemptUid, number>();
  let checkpoints = 0;
  let after: [number, number] = [0, 0];
  for (let read = 0; read < EVENTS_LIMIT; read += PAGE) {
    const page = await rows.events(job, after, PAGE);
    for (const { kind, attempt, at_ms } of page) {
      if (kind === 'attempt.stopping') stoppingAtMs.set(attempt as AttemptUid, at_ms);
      if (kind !== 'checkpoint.added') continue;
      savedAtMs.set(attempt as AttemptUid, at_ms);
      checkpoints++;
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) {
      return { stoppingAtMs, savedAtMs, checkpoints, complete: true };
    }
    after = [last.epoch, last.seq];
  }
  return { stoppingAtMs, savedAtMs, checkpoints, complete: false };
}

async function readWorkers(
  history: History,
  attempts: readonly Attempt[],
): Promise<Map<string, ReceiptWorker>> {
  const ids = [...new Set(attempts.map(({ worker }) => worker))].slice(0, WORKERS_LIMIT);
  if (ids.length === 0) return new Map();
  const rows = await history.system().workers(ids);
  return new Map(
    rows.map(({ id, name, pool, resources }) => {
      const { devices } = JSON.parse(resources) as { devices: Device[] };
      return [id, { name, pool, devices: devices.map(({ model }) => model) }];
    }),
  );
}
