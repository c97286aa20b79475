/** What listens in front of a controller in the same process, and what it needs. */
import type { Log } from '../lib/log.ts';
import type { Settings } from '../model/settings.ts';
import { createGrpcServer } from '../protocol/grpc/server.ts';
import type { RunningController } from './controllerPart.ts';
import { listenerOptions } from './grpc.ts';

export { openBlobStore } from '../blobs/open.ts';
export { startGateway } from './parts.ts';

export async function startGrpc(
  settings: Settings,
  { coordinator }: RunningController,
  log: Log,
): Promise<{ url: string; close(): Promise<void> }> {
  const { host, port } = settings.grpc;
  const listener = listenerOptions(settings);
  const grpc = await createGrpcServer({ coordinator, host, port, log, ...listener });
  const url = `grpc${listener.tls ? 's' : ''}://${host}:${grpc.port}`;
  log.info({ url }, 'gRPC listens');
  return { url, close: () => grpc.close() };
}
