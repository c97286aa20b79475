/** What somebody of another tenant can see, count, name or change: nothing. */
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import type { Scope } from '../../../src/model/token.ts';
import { connectExec, execUrl } from '../../../src/protocol/tunnel/execClient.ts';
import { connectInside, openInside } from '../../../src/protocol/tunnel/inside.ts';
import { NOT_404 } from './lists.ts';
import { exampleBody, filledPath, operationsOf, type TestOperation } from './operations.ts';
import { CANARY, OPERATOR_SCOPES, type ApiWorld } from './world.ts';

const BYTES = 'application/octet-stream';

export function tenantSuite(worldOf: () => ApiWorld): void {
  const guarded = (): TestOperation[] =>
    operationsOf(worldOf().document).filter(({ permission }) => permission.includes(':'));
  /** Tokens of beta with everything that stays within a tenant. */
  const asBeta = () => ({ token: worldOf().within.beta.token });

  describe('another tenant', () => {
    test('sees nothing of it in any list', async () => {
      const world = worldOf();
      const { alpha, things } = world;
      const lists = guarded()
        .filter(({ method, path }) => method === 'GET' && !path.includes('{'))
        .filter(({ permission }) => !OPERATOR_SCOPES.includes(permission as Scope))
        .map(({ path }) => path);
      const { nextCursor } = await alpha.client.listJobs({ limit: 1 });
      const narrowed = [
        `/v1/jobs?name=${CANARY}`,
        '/v1/jobs?owner=ada',
        `/v1/jobs?parent=${things.endedJob}`,
        `/v1/jobs?cursor=${nextCursor}`,
        '/v1/jobs?state=RUNNING',
        '/v1/usage?by=tenant',
        '/v1/usage?by=user',
      ];
      for (const path of [...lists, ...narrowed]) {
        const answer = await world.call(`GET ${path}`, asBeta());
        expect([path, answer.status]).toEqual([path, 200]);
        expect([path, secretsIn(world, answer.text)]).toEqual([path, []]);
      }
    });

    test('finds nothing by id, and changes nothing', async () => {
      const world = worldOf();
      const before = await snapshot(world, guarded());
      const own = await world.within.beta.client.submitJob({ command: ['true'] }, 'own');
      expect(own.state).toBe('PENDING');
      for (const operation of guarded().filter(({ path }) => path.includes('{'))) {
        const { name } = operation;
        const answer = await callAs(world, operation);
        expect([name, answer.status, answer.text]).toEqual([
          name,
          expectedStatus(operation),
          expect.any(String),
        ]);
      }
      expect(await snapshot(world, guarded())).toEqual(before);
    });

    test('counts nothing of it', async () => {
      const { within, call } = worldOf();
      const { beta } = within;
      await beta.client.waitJob(
        (await beta.client.submitJob({ command: ['true'] }, 'n')).id,
        20_000,
      );
      const cluster = await beta.client.cluster();
      expect(cluster.tasks).toEqual({ pending: 0, assigned: 0, running: 0 });
      expect((await call('GET /v1/queue', asBeta())).body['data']).toEqual([]);
    });

    test('cannot name it in what it sends', async () => {
      const { within, things, call } = worldOf();
      const command = ['true'];
      const submit = (more: object) => call('POST /v1/jobs', asBeta(), { command, ...more });
      const after = await submit({ after: [{ job: things.endedJob }] });
      expect([after.status, after.body['code']]).toEqual([404, 'NOT_FOUND']);
      const input = await submit({ inputs: [{ name: 'x', uri: `data:${things.data}` }] });
      expect([input.status, input.body['code']]).toEqual([404, 'NOT_FOUND']);
      const hashes = [things.result, things.checkpoint];
      const missing = await call('POST /v1/blobs/missing', asBeta(), { hashes });
      expect(missing.body['data']).toEqual({ missing: hashes });
      const named = await call('PUT /v1/data/stolen', asBeta(), { hash: things.result, bytes: 1 });
      expect(named.status).toBe(404);
      // The same key is another one in another tenant.
      const keyed = await call(
        'POST /v1/jobs',
        { ...asBeta(), headers: { 'idempotency-key': things.idempotencyKey } },
        { command },
      );
      expect([keyed.status, keyed.body['data']['id']]).toEqual([201, expect.any(String)]);
      expect(keyed.body['data']['id']).not.toBe(things.endedJob);
      await within.beta.client.cancelJob(keyed.body['data']['id'] as string);
    });

    test('cannot pass for the attempt that it names', async () => {
      const { things, call } = worldOf();
      const headers = { 'drover-attempt': things.attempt };
      const { status } = await call(`GET /v1/blobs/${things.blob}`, { ...asBeta(), headers });
      expect(status).toBe(401);
    });

    test('brings no machine on which others’ jobs would run', async () => {
      const joining = await worldOf().call('POST /v1/tokens', asBeta(), { kind: 'join' });
      expect([joining.status, joining.body['detail']]).toEqual([
        403,
        expect.stringContaining('fleet:manage'),
      ]);
    });

    test('makes no token for others, and none with more than its own', async () => {
      const { call } = worldOf();
      for (const body of [
        { tenant: 'alpha' },
        { roles: ['admin'] },
        { scopes: ['fleet:manage'] },
      ]) {
        expect((await call('POST /v1/tokens', asBeta(), body)).status).toBe(403);
      }
    });

    test('looks into nothing that runs', async () => {
      const { server, within, things, call } = worldOf();
      const { token } = within.beta;
      const task = `${things.runningJob}.0`;
      const start = { command: ['true'], tty: false };
      const session = await connectExec({
        ...{ url: execUrl(server.url, task), token, start },
      });
      session.exit.catch(() => undefined);
      await expect(drain(session.output)).rejects.toMatchObject({ code: 'NOT_FOUND' });
      const inside = { server: server.url, token, task, clock: systemClock };
      const tunnel = await connectInside(inside);
      const stream = openInside(tunnel, { kind: 'ps' });
      await expect(drain(stream)).rejects.toMatchObject({ code: 'NOT_FOUND' });
      tunnel.close('seen enough');
      const endpoint = `${task}:8080`;
      expect((await call(`GET /proxy/${endpoint}/`, asBeta())).status).toBe(404);
      const login = await call('POST /v1/proxy/logins', asBeta(), { endpoint });
      const path = String(login.body['data']['path']);
      const spent = await fetch(server.url + path, { redirect: 'manual' });
      const cookie = spent.headers.get('set-cookie')?.split(';')[0] ?? '';
      const page = await call(`GET /proxy/${endpoint}/`, { headers: { cookie } });
      expect([spent.status, page.status]).toEqual([303, 404]);
    });
  });
}

function expectedStatus({ permission, operation }: TestOperation): number {
  if (OPERATOR_SCOPES.includes(permission as Scope)) return 403;
  return NOT_404[operation.operationId]?.status ?? 404;
}

/** As beta, with alpha's things in the path and the documented example as the body. */
function callAs(world: ApiWorld, operation: TestOperation) {
  const path = filledPath(operation, world.things);
  const takesBytes = operation.operation.requestBody?.content[BYTES] !== undefined;
  const bytes = takesBytes ? { raw: CANARY, headers: { 'content-type': BYTES } } : {};
  const options = { token: world.within.beta.token, ...bytes };
  const body = takesBytes ? undefined : exampleBody(world.document, operation);
  return world.call(`${operation.method} ${path}`, options, body);
}

/** What alpha would mind to find in beta's answers. Words that beta itself sent do not count. */
function secretsIn({ things }: ApiWorld, text: string): string[] {
  const { endedJob, runningJob, waitingJob, attempt, token, result, checkpoint } = things;
  const ids = [endedJob, runningJob, waitingJob, attempt, token, result, checkpoint];
  const words = [CANARY, 'alpha', '"ada"', 'ada/', ...ids];
  return words.filter((word) => text.includes(word));
}

/** Everything that alpha can read, without what time changes by itself. */
async function snapshot(
  { within, things, call }: ApiWorld,
  operations: TestOperation[],
): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  for (const operation of operations) {
    const { method, permission, path: pattern } = operation;
    if (method !== 'GET' || OF_THE_FLEET.test(pattern)) continue;
    if (OPERATOR_SCOPES.includes(permission as Scope)) continue;
    const path = filledPath(operation, things);
    const { status, text } = await call(`GET ${path}`, { token: within.alpha.token });
    const isJson = text.startsWith('{');
    const still = isJson ? JSON.stringify(JSON.parse(text, dropTimes)) : text;
    seen[operation.name] = `${status} ${still}`;
  }
  return seen;
}

const OF_THE_FLEET = /\/(cluster|workers)\b/;

function dropTimes(key: string, value: unknown): unknown {
  return /(Ms|Micros|Hours)$|^(used|time|lost)$/.test(key) ? undefined : value;
}

async function drain(pieces: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of pieces) continue;
}
