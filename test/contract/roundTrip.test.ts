/** Whatever a Coordinator is asked and answers, it is asked and answers the same over gRPC. */
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DroverError, ERRORS, type ErrorCode } from '../../src/lib/errors.ts';
import { silentLog } from '../../src/lib/log.ts';
import { PRIORITIES } from '../../src/model/job.ts';
import type { Coordinator, SubmitReply, SubmitRequest } from '../../src/protocol/coordinator.ts';
import { createGrpcCoordinator, type GrpcCoordinator } from '../../src/protocol/grpc/client.ts';
import { createGrpcServer, type GrpcServer } from '../../src/protocol/grpc/server.ts';
import * as agent from './agentArbitraries.ts';
import * as any from './arbitraries.ts';
import * as fleet from './fleetArbitraries.ts';
import * as pools from './poolArbitraries.ts';
import * as schedule from './scheduleArbitraries.ts';

const RUNS = 40;
type Method = keyof Coordinator;
type Arguments = { [Name in Method]: fc.Arbitrary<Parameters<Coordinator[Name]>> };
type Results = { [Name in Method]: fc.Arbitrary<Awaited<ReturnType<Coordinator[Name]>>> };

const { principal, text, page } = any;
const who = principal;
const agentToken = fc.base64String({ minLength: 1 }).map((token) => `t${token}`);
const listOf = fc.tuple(who, text, page);
const listOfTask = fc.oneof(
  listOf,
  fc.tuple(
    who,
    text,
    fc.tuple(page, fc.nat(9)).map(([one, task]) => ({ ...one, task })),
  ),
);

const DOWNSTREAM = {
  issuer: 'https://login.example.org',
  subject: 'ada ü',
  audiences: ['storage', 'registry'],
  sealed: 'v1.k1.a.b',
  refused: [{ audience: 'registry', reason: 'no' }],
};

const ARGUMENTS: Arguments = {
  authenticate: fc.tuple(text),
  submit: fc.tuple(
    who,
    fc
      .record({ specs: fc.array(any.spec, { minLength: 1, maxLength: 3 }) })
      .chain(({ specs }) =>
        fc.constantFrom(
          { specs, idempotencyKey: null, bodyHash: null },
          { specs, idempotencyKey: 'key ü', bodyHash: 'hash' },
          { specs, idempotencyKey: null, bodyHash: null, downstream: DOWNSTREAM },
        ),
      ),
  ),
  getJob: fc.tuple(who, text),
  listJobs: fc.tuple(who, any.listJobsQuery),
  cancelJob: fc.tuple(who, text),
  listTasks: listOf,
  listAttempts: listOfTask,
  listEvents: listOf,
  listCheckpoints: listOfTask,
  requestCheckpoint: fc.oneof(fc.tuple(who, text), fc.tuple(who, text, fc.nat(9))),
  // Of longer waits the client makes several calls.
  waitJob: fc.tuple(who, text, fc.constant(0)),
  readLogs: fc.tuple(who, text, any.logQuery),
  queue: fc.tuple(who, page),
  why: fc.tuple(who, text),
  receipt: fc.tuple(who, text),
  plan: fc.tuple(who, any.spec),
  listBudgets: fc.tuple(who),
  setBudget: fc.tuple(who, schedule.budgetInput),
  deleteBudget: fc.tuple(who, text, text),
  usage: fc.tuple(who, schedule.usageQuery),
  listAudit: fc.tuple(who, page),
  recordAccess: fc.tuple(who, any.accessRecord),
  listData: fc.tuple(who),
  putData: fc.tuple(who, schedule.dataInput),
  removeData: fc.tuple(who, text),
  namedBlobs: fc.tuple(who, any.nullable(text)),
  policy: fc.tuple(who),
  cluster: fc.tuple(who),
  listWorkers: fc.tuple(who, page),
  setDraining: fc.tuple(who, text, fc.boolean()),
  revokeWorker: fc.tuple(who, text),
  listTokens: fc.tuple(who, page),
  createToken: fc.tuple(who, fleet.createToken),
  revokeToken: fc.tuple(who, text),
  admit: fc.tuple(fleet.identity),
  setPriority: fc.tuple(who, text, fc.constantFrom(...PRIORITIES)),
  ...pools.ARGUMENTS,
  listTenants: fc.tuple(who),
  setTenant: fc.tuple(who, any.word, fc.record({ suspended: fc.boolean(), note: any.word })),
  listUsers: fc.tuple(who),
  setUser: fc.tuple(who, any.word, fc.record({ roles: fc.array(any.word, { maxLength: 3 }) })),
  removeUser: fc.tuple(who, any.word, fc.constantFrom('keep', 'cancel', undefined)),
  join: fc.tuple(agentToken, agent.joinRequest),
  sync: fc.tuple(agentToken, agent.syncRequest),
  appendLogs: fc.tuple(agentToken, agent.chunks),
  addCheckpoint: fc.tuple(agentToken, agent.checkpointReport),
  attemptAccess: fc.tuple(agentToken, text),
  attemptSecrets: fc.tuple(agentToken, text),
  attemptTokens: fc.tuple(agentToken, text),
  exchangeCommands: fc.tuple(agentToken, agent.exchangeRequest),
  registerGateway: fc.tuple(text, fc.maxSafeNat()),
  openTunnel: fc.tuple(who, text, text),
  readiness: fc.tuple(),
  metrics: fc.tuple(),
};

const RESULTS: Results = {
  authenticate: fc.option(principal, { nil: undefined }),
  submit: any.submitReply,
  getJob: any.job,
  listJobs: any.pageOf(any.job),
  cancelJob: any.job,
  listTasks: any.pageOf(any.task),
  listAttempts: any.pageOf(any.attempt),
  listEvents: any.pageOf(any.event),
  listCheckpoints: any.pageOf(any.checkpoint),
  requestCheckpoint: fc.array(text, { maxLength: 3 }),
  waitJob: any.job,
  readLogs: any.logPage,
  queue: any.pageOf(any.queueEntry),
  why: schedule.why,
  receipt: schedule.receipt,
  plan: schedule.plan,
  listBudgets: fc.array(schedule.budget, { maxLength: 3 }),
  setBudget: schedule.budget,
  deleteBudget: fc.constant(undefined),
  usage: fc.array(schedule.usageRow, { maxLength: 3 }),
  listAudit: any.pageOf(any.event),
  recordAccess: fc.constant(undefined),
  listData: fc.array(schedule.dataSet, { maxLength: 3 }),
  putData: schedule.dataSet,
  removeData: fc.constant(undefined),
  namedBlobs: any.pageOf(text),
  policy: fleet.policy,
  cluster: fleet.cluster,
  listWorkers: any.pageOf(fleet.worker),
  setDraining: fleet.worker,
  revokeWorker: fleet.worker,
  listTokens: any.pageOf(fleet.token),
  createToken: fleet.token,
  revokeToken: fleet.token,
  admit: fc.option(principal, { nil: undefined }),
  setPriority: any.job,
  ...pools.RESULTS,
  listTenants: fc.array(fleet.tenant, { maxLength: 3 }),
  setTenant: fleet.tenant,
  listUsers: fc.array(fleet.user, { maxLength: 3 }),
  setUser: fleet.user,
  removeUser: fleet.user,
  join: agent.joinReply,
  sync: agent.syncReply,
  appendLogs: agent.acks,
  addCheckpoint: fc.constant(undefined),
  attemptSecrets: fc.record({ values: any.map, token: any.nullable(text) }),
  attemptTokens: fc.record({
    tokens: fc.array(fc.record({ audience: text, token: text, expiresAtMs: any.ms })),
    refused: fc.array(fc.record({ audience: text, reason: text })),
    renewInMs: any.ms,
  }),
  exchangeCommands: agent.exchangeReply,
  attemptAccess: fc.option(fc.record({ tenant: text, job: text, task: text }), {
    nil: undefined,
  }),
  registerGateway: fc.constant(undefined),
  openTunnel: any.tunnelTicket,
  readiness: fleet.readiness,
  metrics: text,
};
const METHODS = Object.keys(RESULTS) as Method[];

/** Answers whatever the test put there, and remembers what it was asked. */
const script: { asked: unknown[]; answer: () => unknown } = { asked: [], answer: () => undefined };
const scripted = Object.fromEntries(
  METHODS.map((name) => [
    name,
    async (...asked: unknown[]) => {
      script.asked = asked;
      return script.answer();
    },
  ]),
) as unknown as Coordinator;

let server: GrpcServer;
let client: GrpcCoordinator;
beforeAll(async () => {
  const secret = { apiSecret: 's3cret' };
  const listener = { host: '127.0.0.1', port: 0, log: silentLog };
  server = await createGrpcServer({ coordinator: scripted, ...listener, ...secret });
  client = createGrpcCoordinator({ url: `grpc://127.0.0.1:${server.port}`, ...secret });
});
afterAll(async () => {
  client.close();
  await server.close();
});

function call(name: Method, parameters: unknown[]): Promise<unknown> {
  const method = client[name] as (...parameters: unknown[]) => Promise<unknown>;
  return method(...parameters);
}

/** Bytes are compared as such, and objects without looking at their prototype. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return [...value];
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}

/** A submission is answered with an id for each of its specs. */
function asMany(reply: unknown, parameters: unknown[]): unknown {
  const { specs } = parameters[1] as SubmitRequest;
  return { ...(reply as SubmitReply), ids: specs.map((_, at) => `j${at}`) };
}

describe('arguments and results arrive as they were', () => {
  test.each(METHODS)('%s', async (name) => {
    await fc.assert(
      fc.asyncProperty(
        ARGUMENTS[name] as fc.Arbitrary<unknown[]>,
        RESULTS[name] as fc.Arbitrary<unknown>,
        async (parameters, given) => {
          const result = name === 'submit' ? asMany(given, parameters) : given;
          script.answer = () => result;
          const reply = await call(name, parameters);
          expect(plain(reply)).toStrictEqual(plain(result));
          expect(plain(script.asked)).toStrictEqual(plain(parameters));
        },
      ),
      { numRuns: RUNS },
    );
  });
});

/** Codes whose words are for the log alone, and what their callers see; see docs/gateway.md. */
const WITHHELD: Partial<Record<ErrorCode, ErrorCode>> = {
  INTERNAL: 'INTERNAL',
  UNAVAILABLE: 'UNAVAILABLE',
  TIMEOUT: 'TIMEOUT',
  NOT_IMPLEMENTED: 'NOT_IMPLEMENTED',
  // Raised by gateways only.
  METHOD_NOT_ALLOWED: 'NOT_IMPLEMENTED',
  RANGE_NOT_SATISFIABLE: 'INTERNAL',
};

describe('errors arrive as they were', () => {
  test.each(Object.keys(ERRORS) as ErrorCode[])('%s', async (code) => {
    const message = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 });
    const hint = fc.option(message, { nil: undefined });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...METHODS), message, hint, async (name, detail, hint) => {
        const [parameters] = fc.sample<unknown[]>(ARGUMENTS[name], 1);
        script.answer = () => {
          throw new DroverError(code, detail, hint === undefined ? {} : { hint });
        };
        const error = await call(name, parameters ?? []).then(
          () => expect.unreachable(),
          (thrown: unknown) => thrown,
        );
        expect(error).toBeInstanceOf(DroverError);
        const seen = WITHHELD[code];
        if (seen) {
          expect(error).toMatchObject({ code: seen, hint: undefined });
          expect((error as DroverError).message).toMatch(/^(The|This) coordinator /);
          return;
        }
        expect(error).toMatchObject({ code, message: detail, status: ERRORS[code].status });
        expect((error as DroverError).hint).toBe(hint);
      }),
      { numRuns: 15 },
    );
  });

  test('a failure nobody expected says nothing about itself', async () => {
    script.answer = () => {
      throw new Error('password of the database is hunter2');
    };
    await expect(client.readiness()).rejects.toMatchObject({
      code: 'INTERNAL',
      message: 'The coordinator failed inside',
    });
  });
});

test('a page of 8 MiB of binary output arrives whole', async () => {
  const bytes = Buffer.alloc(8 * 1024 * 1024, Buffer.from([0xff, 0x00, 0x80, 0x0a]));
  const record = { seq: 1, task: 'j.0', index: 0, attempt: 1, stream: 'stdout' as const };
  const rest = { offset: 0, atMs: 1, base64: bytes.toString('base64') };
  const sent = { records: [{ ...record, ...rest }], next: 1, complete: true };
  script.answer = () => sent;
  const [parameters] = fc.sample(ARGUMENTS.readLogs, 1);
  expect(await call('readLogs', parameters ?? [])).toEqual(sent);
});
