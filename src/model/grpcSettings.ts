/** What must hold between the settings of gRPC. */
import { SHORTEST_SECRET } from './secretFiles.ts';
import type { Settings } from './settings.ts';

export function checkGrpc(
  { apiSecret: secret, apiSecretFile, certFile, keyFile }: Settings['grpc'],
  fail: (setting: string, message: string) => void,
): void {
  if (secret && apiSecretFile) {
    fail('grpc.apiSecret', 'give one of grpc.apiSecret and grpc.apiSecretFile');
  }
  if (secret && secret.length < SHORTEST_SECRET) {
    fail('grpc.apiSecret', `is shorter than ${SHORTEST_SECRET} characters`);
  }
  if (!certFile !== !keyFile) fail('grpc.certFile', 'needs grpc.keyFile, and the other way round');
}
