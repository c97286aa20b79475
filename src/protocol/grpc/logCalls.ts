/** The client's half of the log calls: one page, and page after page as they come. */
import type { Principal } from '../../model/token.ts';
import type { Coordinator, LogFollower, LogPage, LogQuery } from '../coordinator.ts';
import { WAIT_PIECE_MS, type Connection } from './connection.ts';
import * as jobs from './jobMessages.ts';
import * as w from './wire.ts';

export function logCalls(connection: Connection): Pick<Coordinator, 'readLogs'> & LogFollower {
  return {
    readLogs: (who, job, query) => readLogs(connection, who, job, query),
    followLogs: followCall(connection),
  };
}

async function readLogs(
  { coordinator, call, by }: Connection,
  who: Principal,
  job: string,
  query: LogQuery,
): Promise<LogPage> {
  // A shorter wait than asked for is within the contract: the caller asks again.
  const waitMs = Math.min(query.waitMs, WAIT_PIECE_MS);
  const request = {
    ...logRequest(job, query),
    waitMs: w.toBigint(waitMs),
    metrics: query.metrics ?? false,
  };
  return call(
    by(who),
    (options) => coordinator.readLogs(request, options),
    jobs.logPageFromWire,
    waitMs,
  );
}

function followCall({ coordinator, stream, by }: Connection): LogFollower['followLogs'] {
  return (who, job, query, signal) => {
    const request = { ...logRequest(job, query), follow: true };
    const { tailLines: _, ...ofMetrics } = request;
    return query.metrics
      ? stream(
          by(who),
          (options) => coordinator.streamJobMetrics(ofMetrics, options),
          jobs.logPageFromWire,
          signal,
        )
      : stream(
          by(who),
          (options) => coordinator.streamJobLogs(request, options),
          jobs.logPageFromWire,
          signal,
        );
  };
}

function logRequest(job: string, query: LogQuery) {
  return {
    job,
    after: w.toBigint(query.after),
    task: query.task,
    sinceMs: w.toBigintOrNone(query.sinceMs),
    tailLines: query.tailLines,
  };
}
