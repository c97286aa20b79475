/** What listens in front of a controller in the same process, and what it needs. */
import type { Log } from '../lib/log.ts';
import type { Settings } from '../model/settings.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import { createGrpcServer } from '../protocol/grpc/server.ts';
import type { RunningController } from './controllerPart.ts';
import { listenerOptions } from './grpc.ts';
import { grpcTls, withTlsMetrics } from './tls.ts';

export { openBlobStore } from '../blobs/open.ts';
export { startGateway } from './parts.ts';

interface RunningGrpc {
  url: string;
  /** The same, whose metrics tell of its certificates too. */
  coordinator: Coordinator;
  close(): Promise<void>;
}

export async function startGrpc(
  settings: Settings,
  { coordinator }: RunningController,
  log: Log,
): Promise<RunningGrpc> {
  const { host, port } = settings.grpc;
  const tls = grpcTls(settings, log);
  const listener = listenerOptions(settings, tls);
  const measured = withTlsMetrics(coordinator, 'drover_grpc', tls);
  const options = { coordinator: measured, host, port, log, ...listener };
  const grpc = await createGrpcServer(options);
  const url = `grpc${listener.tls ? 's' : ''}://${host}:${grpc.port}`;
  log.info({ url }, 'gRPC listens');
  return {
    url,
    coordinator: measured,
    async close() {
      await grpc.close();
      tls?.close();
    },
  };
}
