/**
 * A real gateway, controller and agent, with one of everything in the tenant alpha and somebody
 * who looks on from the tenant beta.
 */
import { createHash } from 'node:crypto';
import type { OpenApi } from '../../../src/gateway/description/document.ts';
import { SCOPES, type Scope } from '../../../src/model/token.ts';
import { createClient, type DroverClient } from '../../../src/protocol/client.ts';
import { call, type Answer, type CallOptions } from '../../support/journey.ts';
import { startServer, type TestAgent, type TestServer } from '../../support/server.ts';
import { until } from '../../support/wait.ts';

/** A pool that wants a machine and cannot have it: its instances end at once. */
const POOL = 'nowhere';
const UNREACHABLE = { min: 1, ssh: { hosts: [{ host: '127.0.0.1', port: 1 }] } };

/** In the name of everything of alpha: beta must never see it. */
export const CANARY = 'canary-of-alpha';
/** What reaches over tenants by its meaning; beta has none of it. */
export const OPERATOR_SCOPES: readonly Scope[] = ['fleet:manage', 'tenants:manage'];

export interface ApiWorld {
  server: TestServer;
  agent: TestAgent;
  document: OpenApi;
  /** Every scope, in alpha. */
  alpha: Caller;
  /** Every scope that stays within a tenant. */
  within: { alpha: Caller; beta: Caller };
  /** In alpha, with these scopes alone. */
  tokenWith(scopes: readonly Scope[]): Promise<string>;
  things: Things;
  call: (request: string, options?: CallOptions, body?: unknown) => Promise<Answer>;
  /** The server's own end sees the jobs of its own tenant only. */
  cancelAll: () => Promise<void>;
  close(): Promise<void>;
}

interface Caller {
  token: string;
  client: DroverClient;
}

/** One of everything, by what it is called in a path. */
export interface Things {
  endedJob: string;
  runningJob: string;
  waitingJob: string;
  evaluation: string;
  attempt: string;
  blob: string;
  result: string;
  checkpoint: string;
  data: string;
  token: string;
  worker: string;
  pool: string;
  instance: string;
  tenant: string;
  user: string;
  idempotencyKey: string;
}

export async function startApiWorld(): Promise<ApiWorld> {
  // Wrong tokens are what is tried here, more than a person sends by mistake.
  const server = await startServer({
    env: {
      DROVER_LIMITS_RATE_FAILURES_PER_ADDRESS: '0',
      DROVER_FLEET_POOLS: JSON.stringify({ [POOL]: UNREACHABLE }),
      // Random calls need not move an agent of a hundred megabytes that somebody made here.
      DROVER_SERVER_INSTALL_FOLDER: '/nonexistent',
    },
  });
  try {
    const agent = server.agent('one');
    await server.online(1);
    const alpha = await callerIn(server, 'alpha', 'ada', SCOPES);
    const inTenant = SCOPES.filter((scope) => !OPERATOR_SCOPES.includes(scope));
    const within = {
      alpha: await callerIn(server, 'alpha', 'ada', inTenant),
      beta: await callerIn(server, 'beta', 'bea', inTenant),
    };
    const world: ApiWorld = {
      server,
      agent,
      document: (await (await fetch(`${server.url}/openapi.json`)).json()) as OpenApi,
      alpha,
      within,
      tokenWith: async (scopes) => (await callerIn(server, 'alpha', 'ada', scopes)).token,
      things: await makeThings(server, alpha),
      call: (request, options, body) => call(server.url, request, body, options),
      cancelAll: () => cancelAll(server),
      async close() {
        await cancelAll(server);
        await server.close();
      },
    };
    return world;
  } catch (error) {
    await server.close();
    throw error;
  }
}

async function callerIn(
  { url, client }: TestServer,
  tenant: string,
  user: string,
  scopes: readonly Scope[],
): Promise<Caller> {
  const name = `of-${tenant}`;
  const { secret } = await client.createToken({ tenant, user, scopes: [...scopes], name });
  const token = secret ?? '';
  return { token, client: createClient({ url, token }) };
}

async function makeThings(server: TestServer, { token, client }: Caller): Promise<Things> {
  const blob = await putBlob(server.url, token);
  const idempotencyKey = `${CANARY}-key`;
  await client.putData({ name: CANARY, kind: 'blob', hash: blob, bytes: CANARY.length, files: 1 });
  const budget = { tenant: 'alpha', weight: 3, deviceMillis: null, deviceHoursPerDay: null };
  const rest = { deviceHoursPerMonth: null, microsPerDay: null, microsPerMonth: null };
  const limits = { mode: 'soft', atLimit: 'finish', version: null } as const;
  for (const user of ['', 'ada']) {
    await client.setBudget({ ...budget, ...rest, ...limits, user });
  }
  const named = { name: CANARY, labels: { [CANARY]: CANARY } };
  const sleeping = { ...named, command: ['sleep', '600'] };
  const runningJob = (await client.submitJob(sleeping, `${CANARY}-run`)).id;
  const after = [{ job: runningJob, when: 'ok' as const }];
  const waitingJob = (await client.submitJob({ ...sleeping, after }, `${CANARY}-wait`)).id;
  const whole = { ...named, command: ['sh', '-c', WHOLE], checkpoint: {} };
  const endedJob = (await client.submitJob(whole, idempotencyKey)).id;
  await until('the job has ended', async () => {
    return (await client.waitJob(endedJob, 5000)).endedAtMs !== null;
  });
  await until('the other runs', async () => (await client.getJob(runningJob)).state === 'RUNNING');
  const { items: checkpoints } = await client.listCheckpoints(endedJob, {});
  const { items: attempts } = await client.listAttempts(runningJob, {});
  const { items: workers } = await client.listWorkers({});
  return {
    ...{ endedJob, runningJob, waitingJob, blob, idempotencyKey },
    evaluation: await makeEvaluation(client, endedJob),
    attempt: attempts[0]?.uid ?? '',
    result: (await client.getResult(endedJob)).manifest,
    checkpoint: checkpoints[0]?.manifest ?? '',
    data: CANARY,
    token: (await client.createToken({ name: CANARY, scopes: ['jobs:read'] })).id,
    worker: workers[0]?.id ?? '',
    pool: POOL,
    instance: await endedInstance(client),
    tenant: 'alpha',
    user: 'ada',
  };
}

async function endedInstance(client: DroverClient): Promise<string> {
  let id: string | undefined;
  await until('an instance has ended', async () => {
    ({ id } = (await client.listInstances({ ended: true })).items[0] ?? {});
    return id !== undefined;
  });
  return id ?? '';
}

/** As somebody new: others may have left, by the fuzzer's doing. */
async function cancelAll(server: TestServer): Promise<void> {
  for (const tenant of ['alpha', 'beta']) {
    const { client } = await callerIn(server, tenant, 'closer', SCOPES);
    for (const state of ['RUNNING', 'PENDING']) {
      const { items } = await client.listJobs({ state, limit: 500 });
      for (const { id } of items) await client.cancelJob(id);
    }
  }
}

/** Output, metrics, a result and a checkpoint. */
const WHOLE = `
echo ${CANARY}
echo '{"step": 1, "loss": 0.5}' >>"$DROVER_METRICS_FILE"
echo ${CANARY} >"$DROVER_RESULT_DIR/result.txt"
cd "$DROVER_CHECKPOINT_DIR" && echo ${CANARY} >new && mv new state
`;

/** A job that says it is one: making one the long way needs a training and a template. */
async function makeEvaluation(client: DroverClient, training: string): Promise<string> {
  const about = { job_id: training, task: `${training}.0`, checkpoint: 1, config: {} };
  const annotations = {
    evaluation: JSON.stringify({ ...about, manifest: CANARY, template: CANARY }),
  };
  const spec = { name: 'scaimind-evaluation', command: ['true'], annotations };
  return (await client.submitJob(spec, `${CANARY}-evaluation`)).id;
}

async function putBlob(url: string, token: string): Promise<string> {
  const bytes = Buffer.from(CANARY);
  const hash = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  const headers = { 'content-type': 'application/octet-stream' };
  const answer = await call(url, `PUT /v1/blobs/${hash}`, undefined, {
    token,
    headers,
    raw: bytes,
  });
  if (answer.status !== 201) throw new Error(`the blob was answered ${answer.status}`);
  return hash;
}
