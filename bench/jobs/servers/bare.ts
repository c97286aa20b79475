/**
 * Started as a process: the least that could accept jobs durably over HTTP. Fastify, zod, one
 * SQLite file in WAL with synchronous FULL, three rows for each job (job, task, event), all
 * requests of one turn of the event loop in one transaction, the answer after its commit. No
 * tenants, state, claims or history.
 */
import { DatabaseSync } from 'node:sqlite';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { z } from 'zod';
import {
  serializerCompiler,
  validatorCompiler,
  type ZodTypeProvider,
} from 'fastify-type-provider-zod';

const [file, token] = process.argv.slice(2);
if (!file || !token) throw new Error('usage: bare.ts FILE TOKEN');

const job = z.strictObject({
  name: z.string().max(200),
  command: z.array(z.string()).min(1),
  env: z.record(z.string(), z.string()),
  labels: z.record(z.string(), z.string()),
});
const accepted = z.object({ data: z.object({ ids: z.array(z.string()) }) });
type Job = z.infer<typeof job>;

const commit = openStore(file);
const app = Fastify().withTypeProvider<ZodTypeProvider>();
app.setValidatorCompiler(validatorCompiler);
app.setSerializerCompiler(serializerCompiler);
app.addHook('onRequest', (request, reply, next) => {
  if (request.headers.authorization === `Bearer ${token}`) next();
  else reply.code(401).send();
});
app.post(
  '/jobs',
  { schema: { body: job, response: { 201: accepted } } },
  async (request, reply) => {
    const ids = await commit([request.body], String(request.headers['idempotency-key']));
    return reply.code(201).send({ data: { ids } });
  },
);
const batch = z.strictObject({ jobs: z.array(job).max(1000) });
app.post(
  '/batch',
  { schema: { body: batch, response: { 201: accepted } } },
  async (request, reply) => {
    const ids = await commit(request.body.jobs, null);
    return reply.code(201).send({ data: { ids } });
  },
);
await app.listen({ port: 0, host: '127.0.0.1' });
process.stdout.write(`port ${(app.server.address() as AddressInfo).port}\n`);

/** Collects what arrives in one turn of the event loop and commits it together. */
function openStore(path: string): (jobs: Job[], key: string | null) => Promise<string[]> {
  const insert = prepare(path);
  let waiting: (() => void)[] = [];
  let work: (() => void)[] = [];
  let next = 1;
  const flush = (): void => {
    const [answers, inserts] = [waiting, work];
    waiting = [];
    work = [];
    insert.begin.run();
    for (const one of inserts) one();
    insert.commit.run();
    for (const answer of answers) answer();
  };
  return (jobs, key) =>
    new Promise((resolve) => {
      if (work.length === 0) setImmediate(flush);
      const ids = jobs.map(() => `job-${next++}`);
      work.push(() => {
        const now = Date.now();
        for (const [i, id] of ids.entries()) {
          insert.job.run(id, key, JSON.stringify(jobs[i]), now);
          insert.task.run(id, now);
          insert.event.run(id, now);
        }
      });
      waiting.push(() => resolve(ids));
    });
}

function prepare(path: string) {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
    CREATE TABLE jobs (id TEXT PRIMARY KEY, key TEXT UNIQUE, spec TEXT, at INTEGER) WITHOUT ROWID;
    CREATE TABLE tasks (job TEXT PRIMARY KEY, state TEXT, at INTEGER) WITHOUT ROWID;
    CREATE TABLE events (seq INTEGER PRIMARY KEY, job TEXT, kind TEXT, at INTEGER);`);
  return {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    job: db.prepare('INSERT INTO jobs VALUES (?, ?, ?, ?)'),
    task: db.prepare("INSERT INTO tasks VALUES (?, 'PENDING', ?)"),
    event: db.prepare("INSERT INTO events (job, kind, at) VALUES (?, 'submitted', ?)"),
  };
}
