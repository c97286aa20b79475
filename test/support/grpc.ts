/** A fake Coordinator behind a real gRPC listener, and plain clients of it. */
import { createClient, type Client } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { silentLog } from '../../src/lib/log.ts';
import { FakeCoordinator } from '../../src/protocol/fakeCoordinator.ts';
import { Coordinator } from '../../src/protocol/gen/drover/v1/coordinator_pb.ts';
import { Health } from '../../src/protocol/gen/grpc/health/v1/health_pb.ts';
import {
  createGrpcServer,
  type GrpcServer,
  type GrpcServerOptions,
} from '../../src/protocol/grpc/server.ts';

export const API_SECRET = 'shared by gateways';

export interface GrpcFake {
  fake: FakeCoordinator;
  server: GrpcServer;
  url: string;
  /** Generated clients without any of our client code. */
  coordinator: Client<typeof Coordinator>;
  health: Client<typeof Health>;
  /** Headers of the administrator. */
  asAdmin: { headers: { authorization: string } };
  /** Cuts the clients' connection. */
  hangUp(): void;
  close(): Promise<void>;
}

export async function startGrpcFake(options: Partial<GrpcServerOptions> = {}): Promise<GrpcFake> {
  const fake = new FakeCoordinator();
  const server = await createGrpcServer({
    coordinator: fake,
    host: '127.0.0.1',
    port: 0,
    apiSecret: API_SECRET,
    log: silentLog,
    ...options,
  });
  const baseUrl = `http://127.0.0.1:${server.port}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  const transport = createGrpcTransport({ baseUrl, sessionManager, acceptCompression: [] });
  return {
    fake,
    server,
    url: `grpc://127.0.0.1:${server.port}`,
    coordinator: createClient(Coordinator, transport),
    health: createClient(Health, transport),
    asAdmin: { headers: { authorization: `Bearer ${fake.adminSecret}` } },
    hangUp: () => sessionManager.abort(),
    async close() {
      sessionManager.abort();
      await server.close();
    },
  };
}
