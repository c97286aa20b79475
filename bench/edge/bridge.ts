/** What the way through the gateway adds to a call: REST beside gRPC, at the same pace. */
import { performance } from 'node:perf_hooks';
import type { Principal } from '../../src/model/token.ts';
import { jobSpec } from '../../src/protocol/jobSpec.ts';
import { COUNTER, paced, type RequestShape } from '../jobs/support/loader.ts';
import { percentile } from '../jobs/support/measure.ts';
import { treeUsage } from '../jobs/support/processes.ts';
import type { Row } from '../jobs/support/report.ts';
import type { EdgeCluster } from './cluster.ts';
import { row } from './rows.ts';

const PACE_PER_SECOND = 1000;
const CONNECTIONS = 64;
/** In turn; the best counts, as a shared machine is only ever slower than itself. */
const ROUNDS = 5;
const WARMUP_SECONDS = 1;
const ADDED_MS = 1;
const SPEC = { name: 'edge', command: ['true'], resources: { cpuMillis: 1_000_000 } };

interface Way {
  rest: RequestShape;
  grpc: (n: number) => Promise<unknown>;
}

export async function bridge(cluster: EdgeCluster, seconds: number): Promise<Row[]> {
  const who = await cluster.direct.authenticate(cluster.token);
  if (!who) throw new Error('the token of the cluster is unknown');
  const ways = await waysOf(cluster, who);
  const rows: Row[] = [];
  for (const [name, way] of Object.entries(ways)) {
    const p50: Record<'rest' | 'grpc', number[]> = { rest: [], grpc: [] };
    const p99: Record<'rest' | 'grpc', number[]> = { rest: [], grpc: [] };
    const cpuMs: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const which of ['grpc', 'rest'] as const) {
        const before = treeUsage(cluster.gateway.pid).cpuMs;
        const latencies =
          which === 'rest' ? await overRest(cluster, way, seconds) : await overGrpc(way, seconds);
        const used = treeUsage(cluster.gateway.pid).cpuMs - before;
        if (which === 'rest') cpuMs.push(used / (PACE_PER_SECOND * (seconds + WARMUP_SECONDS)));
        p50[which].push(percentile(latencies, 0.5));
        p99[which].push(percentile(latencies, 0.99));
      }
    }
    const [rest, grpc] = [Math.min(...p50.rest), Math.min(...p50.grpc)];
    const note =
      `p50 ${grpc.toFixed(2)} ms by gRPC, ${rest.toFixed(2)} ms by REST; ` +
      `p99 ${Math.min(...p99.grpc).toFixed(1)} and ${Math.min(...p99.rest).toFixed(1)}; ` +
      `from the due time, ${PACE_PER_SECOND}/s, best of ${ROUNDS}`;
    rows.push(row(`added by the bridge, p50 of ${name}`, rest - grpc, 'ms', ADDED_MS, note));
    const each = `processor time of the gateway for a ${name}`;
    rows.push(row(each, Math.min(...cpuMs), 'ms', null, 'steadier than times on a busy machine'));
  }
  return rows;
}

async function waysOf(
  { client, direct, token }: EdgeCluster,
  who: Principal,
): Promise<Record<string, Way>> {
  const { id } = await client.submitJob({ ...SPEC, startWithinMs: 3_600_000 }, 'seen');
  const spec = jobSpec.parse(SPEC);
  const authorization = `Bearer ${token}`;
  return {
    'GET job': {
      rest: { method: 'GET', path: `/v1/jobs/${id}`, headers: { authorization }, body: '' },
      grpc: () => direct.getJob(who, id),
    },
    'POST job': {
      rest: {
        method: 'POST',
        path: '/v1/jobs',
        headers: { authorization, 'idempotency-key': `edge-${process.pid}-${COUNTER}` },
        body: JSON.stringify(SPEC),
      },
      grpc: (n) =>
        direct.submit(who, {
          specs: [spec],
          idempotencyKey: `direct-${process.pid}-${performance.now()}-${n}`,
          bodyHash: 'same',
        }),
    },
  };
}

async function overRest({ port }: EdgeCluster, { rest }: Way, seconds: number): Promise<number[]> {
  // Keys are new in each round.
  const headers = { ...rest.headers };
  if (headers['idempotency-key']) headers['idempotency-key'] += `-${performance.now()}`;
  const { latenciesMs } = await paced({
    port,
    request: { ...rest, headers },
    connections: CONNECTIONS,
    seconds,
    warmupSeconds: WARMUP_SECONDS,
    perSecond: PACE_PER_SECOND,
  });
  return latenciesMs;
}

/** As `paced` does it, with lanes instead of connections: HTTP/2 has them inside. */
async function overGrpc({ grpc }: Way, seconds: number): Promise<number[]> {
  const warmup = WARMUP_SECONDS * PACE_PER_SECOND;
  const total = warmup + seconds * PACE_PER_SECOND;
  const latenciesMs: number[] = [];
  const began = performance.now();
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < total) {
      const n = next++;
      const dueAt = began + (n * 1000) / PACE_PER_SECOND;
      for (let left = dueAt - performance.now(); left > 0; left = dueAt - performance.now()) {
        const waitMs = Math.ceil(left);
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
      await grpc(n);
      if (n >= warmup) latenciesMs.push(performance.now() - dueAt);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, lane));
  return latenciesMs;
}
