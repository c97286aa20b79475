/** Controller, gateway and agent as three processes, as where the edge stands apart. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient, type DroverClient } from '../../src/protocol/client.ts';
import { createGrpcCoordinator, type GrpcCoordinator } from '../../src/protocol/grpc/client.ts';
import { until } from '../jobs/support/measure.ts';
import { freePort } from '../jobs/support/ports.ts';
import { start, type Child } from '../jobs/support/processes.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const SECRET = 'a-secret-of-the-benchmark-alone';
const READY_LIMIT_MS = 60_000;
/** Open files a process may have: 10,000 streams, and what else it has open. */
export const OPEN_FILES = 16_000;

export interface EdgeCluster {
  /** Of the gateway. */
  port: number;
  token: string;
  client: DroverClient;
  /** The same controller without the gateway. */
  direct: GrpcCoordinator;
  gateway: Child;
  close(): Promise<void>;
}

/** Without an agent what is submitted waits, and the scheduler has nothing to weigh. */
export async function startCluster(directory: string, withAgent: boolean): Promise<EdgeCluster> {
  const [grpcPort, port] = [await freePort(), await freePort()];
  const data = join(directory, 'data');
  mkdirSync(data, { recursive: true });
  const env = {
    HOME: directory,
    DROVER_DATA: data,
    DROVER_LOG_LEVEL: 'warn',
    DROVER_GRPC_PORT: String(grpcPort),
    DROVER_GRPC_API_SECRET: SECRET,
    // What is measured is the way through, not where it is cut off.
    DROVER_LIMITS_STREAMS_PER_TENANT: '20000',
    DROVER_LIMITS_STREAMS_PER_TOKEN: '20000',
  };
  const children: Child[] = [];
  const role = (...args: string[]): Child => {
    const limited = [
      '-c',
      `ulimit -n ${OPEN_FILES} && exec "$0" "$@"`,
      join(ROOT, 'drover'),
      ...args,
    ];
    const child = start('sh', limited, { env });
    children.push(child);
    return child;
  };
  const url = `http://127.0.0.1:${port}`;
  const grpcUrl = `grpc://127.0.0.1:${grpcPort}`;
  role('controller', '--port', String(port));
  const gateway = role('gateway', '--coordinator', grpcUrl, '--port', String(port));
  await until('the gateway is ready', READY_LIMIT_MS, 50, async () => {
    try {
      return (await fetch(`${url}/readyz`)).status === 200;
    } catch {
      // Not listening yet.
      return false;
    }
  });
  const text = readFileSync(join(data, 'connection.json'), 'utf8');
  const { token, joinToken } = JSON.parse(text) as { token: string; joinToken: string };
  const agent = ['agent', '--join', url, joinToken, '--data', join(directory, 'agent')];
  if (withAgent) role(...agent, '--resources', 'cpus=64,mem=8Gi', '--name', 'bench');
  const direct = createGrpcCoordinator({ url: grpcUrl, apiSecret: SECRET });
  return {
    port,
    token,
    client: createClient({ url, token }),
    direct,
    gateway,
    async close() {
      direct.close();
      for (const child of children.toReversed()) await child.stop();
    },
  };
}
