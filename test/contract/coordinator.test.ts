/** The Coordinator contract on the fake, and on the fake behind gRPC. */
import { silentLog } from '../../src/lib/log.ts';
import { FakeCoordinator } from '../../src/protocol/fakeCoordinator.ts';
import { createGrpcCoordinator } from '../../src/protocol/grpc/client.ts';
import { createGrpcServer } from '../../src/protocol/grpc/server.ts';
import { accountsContract } from './accounts.contract.ts';
import { coordinatorContract, type CoordinatorUnderTest } from './coordinator.contract.ts';

coordinatorContract('in memory', inMemory);
coordinatorContract('in memory, over gRPC', overGrpc);
accountsContract('in memory', inMemory);
accountsContract('in memory, over gRPC', overGrpc);

async function inMemory(): Promise<CoordinatorUnderTest> {
  const coordinator = new FakeCoordinator();
  const { adminSecret, joinSecret } = coordinator;
  return { coordinator, adminSecret, joinSecret, close: async () => {} };
}

async function overGrpc(): Promise<CoordinatorUnderTest> {
  const fake = new FakeCoordinator();
  const apiSecret = 'gateway secret with spaces';
  const server = await createGrpcServer({
    coordinator: fake,
    host: '127.0.0.1',
    port: 0,
    apiSecret,
    log: silentLog,
  });
  const coordinator = createGrpcCoordinator({ url: `grpc://127.0.0.1:${server.port}`, apiSecret });
  return {
    coordinator,
    adminSecret: fake.adminSecret,
    joinSecret: fake.joinSecret,
    async close() {
      coordinator.close();
      await server.close();
    },
  };
}
