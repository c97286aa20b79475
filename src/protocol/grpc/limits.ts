/** Limits of the gRPC listener and its clients, and the wait that enforces those of time. */
import type { Settings } from 'node:http2';
import { DroverError } from '../../lib/errors.ts';

export interface GrpcLimits {
  /** Of one message to the server: a batch of jobs, a post of log chunks. */
  requestBytes: number;
  /** Of one message from the server: a page of a list or of logs. */
  responseBytes: number;
  /** A plain call is given up after this long. */
  unaryMs: number;
  /** Longest time a call is held for something to happen; a longer wait is cut to it. */
  heldMs: number;
  /** A stream is ended after this long; its client resumes. */
  streamMs: number;
  /** A stream learns this soon that its token was revoked, like a gateway that caches tokens. */
  recheckMs: number;
  streamsPerConnection: number;
  connections: number;
  /**
   * What one connection may hold in buffers before Node refuses its streams. A gateway has one
   * connection for everything, so Node's 10 MB are few: replies to calls already done were refused.
   */
  connectionMegabytes: number;
  /**
   * How much may be under way to a reader of one stream, and of a connection, before it reads. With
   * HTTP/2's own 64 KiB, a round trip of 40 ms leaves 1 MB/s.
   */
  streamWindowBytes: number;
  connectionWindowBytes: number;
  /** The same of a stream that is followed: a reader that is stuck holds as much in memory. */
  followWindowBytes: number;
  /** A client opens another connection for more; servers that take fewer say so themselves. */
  followsPerConnection: number;
  /** How long a stop waits for calls in progress. */
  drainMs: number;
}

export const GRPC_LIMITS: GrpcLimits = {
  requestBytes: 16 * 1024 * 1024,
  responseBytes: 64 * 1024 * 1024,
  unaryMs: 30_000,
  heldMs: 60_000,
  streamMs: 3_600_000,
  recheckMs: 5_000,
  streamsPerConnection: 1000,
  connections: 10_000,
  connectionMegabytes: 512,
  streamWindowBytes: 1024 * 1024,
  connectionWindowBytes: 16 * 1024 * 1024,
  followWindowBytes: 256 * 1024,
  followsPerConnection: 100,
  drainMs: 5_000,
};

/** HTTP/2 options of both ends. */
export function sessionOptions(limits: GrpcLimits): {
  maxSessionMemory: number;
  settings: Settings;
} {
  return {
    maxSessionMemory: limits.connectionMegabytes,
    settings: {
      initialWindowSize: limits.streamWindowBytes,
      maxConcurrentStreams: limits.streamsPerConnection,
    },
  };
}

/**
 * The work's result, unless time runs out or a signal comes first. The work itself cannot be
 * stopped; its result is dropped then.
 */
export function bounded<Result>(
  work: Promise<Result>,
  limitMs: number,
  signals: readonly AbortSignal[],
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      settle();
      reject(new DroverError('TIMEOUT', `the call was given up after ${limitMs} ms`));
    }, limitMs);
    const onAbort = (): void => {
      settle();
      reject(signals.find((signal) => signal.aborted)?.reason as Error);
    };
    const settle = (): void => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', onAbort);
    };
    for (const signal of signals) signal.addEventListener('abort', onAbort, { once: true });
    if (signals.some((signal) => signal.aborted)) onAbort();
    work.then(resolve, reject).finally(settle);
  });
}
