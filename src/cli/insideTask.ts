/** Connections into a running task, all over one tunnel that is dialled again when it has ended. */
import type { Duplex } from 'node:stream';
import { systemClock } from '../lib/clock.ts';
import { joinDuplexes, streamDuplex } from '../protocol/tunnel/duplex.ts';
import { connectInside, openInside, type InsideRequest } from '../protocol/tunnel/inside.ts';
import type { TunnelStream } from '../protocol/tunnel/stream.ts';
import type { Tunnel } from '../protocol/tunnel/tunnel.ts';
import type { Connection } from './connection.ts';

export interface InsideTask {
  open(request: InsideRequest): Promise<TunnelStream>;
  connect(request: InsideRequest): Promise<Duplex>;
  /** Resolves when both are closed, with what broke them, if anything did. */
  join(local: Duplex, request: InsideRequest): Promise<Error | undefined>;
  close(reason: string): void;
}

export function insideTask({ url, token }: Connection, task: string): InsideTask {
  let dialled: Promise<Tunnel> | undefined;
  let current: Tunnel | undefined;
  const dial = async (): Promise<Tunnel> => {
    current = await connectInside({ server: url, token: token ?? '', task, clock: systemClock });
    return current;
  };
  const open = async (request: InsideRequest): Promise<TunnelStream> => {
    if (current?.isOpen === false) dialled = undefined;
    dialled ??= dial();
    try {
      return openInside(await dialled, request);
    } catch (error) {
      dialled = undefined;
      throw error;
    }
  };
  const connect = async (request: InsideRequest): Promise<Duplex> =>
    streamDuplex(await open(request));
  return {
    open,
    connect,
    join: async (local, request) => joinDuplexes(local, await connect(request)),
    close: (reason) => current?.close(reason),
  };
}
