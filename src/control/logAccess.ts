/**
 * The log half of the Coordinator: who may append and read, and where a follow ends. What is
 * measured of a job goes the same way, into a store of its own.
 */
import type { Clock } from '../lib/clock.ts';
import { parseAttemptUid, taskId, type AttemptUid, type JobId } from '../model/ids.ts';
import { USED } from '../model/metric.ts';
import type { Principal } from '../model/token.ts';
import type { LogAck, LogChunk, LogStream, OutputStream } from '../protocol/agent.ts';
import type { LogPage, LogQuery } from '../protocol/coordinator.ts';
import type { State } from '../state/state.ts';
import type { History } from '../store/contract.ts';
import type { AttemptRow } from '../store/database.ts';
import type { Agents } from './agents.ts';
import type { Jobs } from './jobs.ts';
import type { LogRead, LogStore, OwnedChunk } from './logs.ts';

/** One page of a read. */
const PAGE_BYTES = 256 * 1024;
/** A caller waits at most this long in one call; he calls again. */
const LONGEST_WAIT_MS = 30_000;
/** How long after a job's end a follow still waits for bytes its agent has announced. */
const TAIL_WAIT_MS = 10 * 60_000;
/** Ended attempts whose owner is remembered without asking the database. */
const OWNERS_KEPT = 10_000;
const ALL_ATTEMPTS = 1_000_000;

export interface LogAccessOptions {
  state: State;
  history: History;
  logs: LogStore;
  /** What is measured of jobs; absent: it is not kept. */
  jobMetrics?: LogStore | undefined;
  jobs: Jobs;
  agents: Agents;
  clock: Clock;
}

export interface LogAccess {
  appendLogs(workerToken: string, chunks: LogChunk[]): Promise<LogAck[]>;
  readLogs(who: Principal, job: string, query: LogQuery): Promise<LogPage>;
}

type Owner = Pick<OwnedChunk, 'job' | 'task' | 'index' | 'attempt'>;

export function createLogAccess(options: LogAccessOptions): LogAccess {
  const { state, history, logs, jobMetrics, jobs, agents, clock } = options;
  const owners = new Map<string, Owner>();
  /** On the boot clock: since when the last bytes of an ended job are waited for. */
  const waitedSince = new Map<string, number>();

  /**
   * The uid is known only to the controller and to the agent that was told to run it, so whoever
   * has it may append, also after the attempt was called lost: late bytes are worth keeping.
   */
  async function ownerOf(uid: string): Promise<Owner | null> {
    const known = owners.get(uid);
    if (known) return known;
    const named = parseAttemptUid(uid);
    if (!named) return null;
    if (!state.attempts.has(uid as AttemptUid)) {
      const row = await history.system().attempt(named.job, named.index, named.n);
      if (row?.uid !== uid) return null;
    }
    const { job, index, n } = named;
    const owner = { job, index, attempt: n, task: taskId(job, index) };
    owners.set(uid, owner);
    const oldest = owners.size > OWNERS_KEPT ? owners.keys().next().value : undefined;
    if (oldest !== undefined) owners.delete(oldest);
    return owner;
  }

  async function appendLogs(workerToken: string, chunks: LogChunk[]): Promise<LogAck[]> {
    agents.workerOf(workerToken);
    const owned: OwnedChunk[] = [];
    const measured: OwnedChunk[] = [];
    const refused: LogAck[] = [];
    for (const chunk of chunks) {
      const owner = await ownerOf(chunk.uid);
      const as = MEASURED[chunk.stream];
      if (owner && as && jobMetrics) measured.push({ ...chunk, ...owner, stream: as });
      else if (owner && isOutput(chunk)) owned.push({ ...chunk, ...owner });
      // Nobody's bytes are dropped, but acknowledged: the agent must not offer them for ever.
      else {
        const { uid, stream, offset, bytes } = chunk;
        refused.push({ uid, stream, offset: offset + bytes.length });
      }
    }
    const [acks, metricAcks] = await Promise.all([
      owned.length > 0 ? logs.append(owned) : [],
      measured.length > 0 && jobMetrics ? jobMetrics.append(measured) : [],
    ]);
    return [...acks, ...metricAcks.map((ack) => asMeasured(ack)), ...refused];
  }

  async function readLogs(who: Principal, job: string, query: LogQuery): Promise<LogPage> {
    // Log bytes are on disk when they are read; only the end of a job is the store's to tell.
    const endedAtMs = await jobs.endedAt(who, job);
    const { waitMs, metrics = false, ...selection } = query;
    const store = metrics ? jobMetrics : logs;
    if (!store) return { records: [], next: query.after, complete: endedAtMs !== null };
    const read = { ...selection, limitBytes: PAGE_BYTES };
    const readPage = (after: number): Promise<Omit<LogPage, 'complete'>> =>
      readFrom(store, job, { ...read, after }, metrics);
    const page = await readPage(read.after);
    if (page.records.length > 0) return { ...page, complete: false };
    if (endedAtMs !== null && !(await tailMissing(who, job, endedAtMs, metrics))) {
      // What came in between the read and the look at the tail.
      const rest = await readPage(page.next);
      return { ...rest, complete: rest.records.length === 0 };
    }
    if (waitMs <= 0) return { ...page, complete: false };
    const wait = Math.min(waitMs, LONGEST_WAIT_MS);
    const news = store.wait(job, page.next, wait);
    await (endedAtMs === null ? Promise.race([news, jobs.ended(job as JobId, wait)]) : news);
    delete read.tailLines;
    return { ...(await readPage(page.next)), complete: false };
  }

  /** The wall clock, which may step, is asked only once: by how much it had waited already. */
  function waitedMs(job: string, endedAtMs: number): number {
    const bootMs = clock.bootMs();
    let since = waitedSince.get(job);
    if (since === undefined) {
      since = bootMs - Math.max(0, clock.now() - endedAtMs);
      waitedSince.set(job, since);
      const oldest = waitedSince.size > OWNERS_KEPT ? waitedSince.keys().next().value : undefined;
      if (oldest !== undefined) waitedSince.delete(oldest);
    }
    return bootMs - since;
  }

  /** Whether bytes that an exit report announced are still on their way. */
  async function tailMissing(
    who: Principal,
    job: string,
    endedAtMs: number,
    metrics: boolean,
  ): Promise<boolean> {
    if (waitedMs(job, endedAtMs) > TAIL_WAIT_MS) return false;
    const attempts = await history.forTenant(who.tenant).attempts(job, [-1, -1], ALL_ATTEMPTS);
    const stored = await ((metrics && jobMetrics) || logs).offsets(job);
    return attempts.some((attempt) =>
      announcedMore(attempt, announced(attempt, metrics), stored[attempt.uid]),
    );
  }

  function announcedMore(
    attempt: AttemptRow,
    { stdout, stderr }: Sizes,
    stored: Sizes | undefined,
  ): boolean {
    const missing = stdout > (stored?.stdout ?? 0) || stderr > (stored?.stderr ?? 0);
    // A machine that is gone brings nothing any more.
    return missing && state.workers.has(attempt.worker as never);
  }

  return { appendLogs, readLogs };
}

type Sizes = Record<OutputStream, number>;

/** How much its agent said there is, when it ended. */
function announced(row: AttemptRow, metrics: boolean): Sizes {
  if (!metrics) return { stdout: row.stdout_bytes ?? 0, stderr: row.stderr_bytes ?? 0 };
  const facts = JSON.parse(row.facts) as Record<string, string>;
  const size = (name: string): number => Number(facts[name] ?? 0) || 0;
  return { stdout: size(USED.metricsFileBytes), stderr: size(USED.systemFileBytes) };
}

/** A store holds two streams of each attempt; that of metrics has these two in their places. */
const MEASURED: Partial<Record<LogStream, OutputStream>> = { metrics: 'stdout', system: 'stderr' };
const UNMEASURED = { stdout: 'metrics', stderr: 'system' } as const;

function isOutput<Chunk extends LogChunk>(chunk: Chunk): chunk is Chunk & { stream: OutputStream } {
  return chunk.stream === 'stdout' || chunk.stream === 'stderr';
}

function asMeasured<Part extends { stream: LogStream }>(
  part: Part,
): Omit<Part, 'stream'> & { stream: LogStream } {
  const { stream } = part;
  const is = stream === 'stdout' || stream === 'stderr' ? UNMEASURED[stream] : stream;
  return { ...part, stream: is };
}

async function readFrom(
  store: LogStore,
  job: string,
  query: LogRead,
  metrics: boolean,
): Promise<Omit<LogPage, 'complete'>> {
  const page = await store.read(job, query);
  return metrics ? { ...page, records: page.records.map((record) => asMeasured(record)) } : page;
}
