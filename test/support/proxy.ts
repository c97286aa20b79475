/** A TCP proxy that misbehaves on demand: cuts connections midway, or lets nothing through. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface FaultProxy {
  url: string;
  /** Nothing passes, in either direction; what was on its way arrives when healed. */
  partition(): void;
  heal(): void;
  /** Connections that were reset so far. */
  cuts(): number;
  /** Asked for each new connection: after how many bytes, both ways together, it is reset. */
  cutAfter: () => number;
  close(): Promise<void>;
}

export async function startProxy(target: string): Promise<FaultProxy> {
  const port = Number(new URL(target).port);
  const sockets = new Set<Socket>();
  let partitioned = false;
  let cuts = 0;

  const join = (client: Socket): void => {
    const server = connect(port, '127.0.0.1');
    let left = proxy.cutAfter();
    const both = [client, server];
    const end = (): void => both.forEach((socket) => socket.destroy());
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      if (partitioned) from.pause();
      from.on('data', (bytes: Buffer) => {
        left -= bytes.length;
        if (left > 0) {
          to.write(bytes);
          return;
        }
        // The beginning goes through, so that the other side meets half a message.
        to.write(bytes.subarray(0, Math.max(0, bytes.length + left)), () => {
          for (const socket of both) socket.resetAndDestroy();
        });
        from.pause();
        cuts++;
      });
      from.on('end', () => to.end());
      from.on('error', end);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  };
  const listener = createServer({ allowHalfOpen: true }, join);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const proxy: FaultProxy = {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    partition() {
      partitioned = true;
      for (const socket of sockets) socket.pause();
    },
    heal() {
      partitioned = false;
      for (const socket of sockets) socket.resume();
    },
    cuts: () => cuts,
    cutAfter: () => Number.POSITIVE_INFINITY,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
  return proxy;
}
