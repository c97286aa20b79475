/** One read of the Coordinator by somebody, of his own things or of another tenant's. */
import { DroverError } from '../../src/lib/errors.ts';
import type { Principal } from '../../src/model/token.ts';
import type { Coordinator } from '../../src/protocol/coordinator.ts';
import type { Checker } from './checkers/checker.ts';
import type { Coverage } from './coverage.ts';
import type { World } from './world.ts';

export interface ReadOptions {
  world: World;
  checker: Checker;
  coverage: Coverage;
  coordinator: Coordinator;
  who: Principal;
  id: string;
  /** Whether the job is of the reader's tenant. */
  own: boolean;
}

const PAGE = { limit: 20 };
const SHORT_WAIT_MS = 500;

type Read = (coordinator: Coordinator, who: Principal, id: string) => Promise<unknown>;

/** Each asks about one job: another tenant's is not there. */
const OF_JOB: Record<string, Read> = {
  getJob: (c, who, id) => c.getJob(who, id),
  listTasks: (c, who, id) => c.listTasks(who, id, PAGE),
  listAttempts: (c, who, id) => c.listAttempts(who, id, PAGE),
  listEvents: (c, who, id) => c.listEvents(who, id, PAGE),
  waitJob: (c, who, id) => c.waitJob(who, id, SHORT_WAIT_MS),
  why: (c, who, id) => c.why(who, id),
  readLogs: (c, who, id) => c.readLogs(who, id, { after: 0, waitMs: 0 }),
};

const OF_TENANT: Record<string, Read> = {
  listJobs: (c, who) => c.listJobs(who, PAGE),
  listRunning: (c, who) => c.listJobs(who, { ...PAGE, state: 'RUNNING' }),
  queue: (c, who) => c.queue(who, PAGE),
  listTokens: (c, who) => c.listTokens(who, PAGE),
  listWorkers: (c, who) => c.listWorkers(who, PAGE),
  listAudit: (c, who) => c.listAudit(who, PAGE),
  listBudgets: (c, who) => c.listBudgets(who),
  listTenants: (c, who) => c.listTenants(who),
  listInstances: (c, who) => c.listInstances(who, { ...PAGE, pool: '', ended: false }),
  listUsers: (c, who) => c.listUsers(who),
  cluster: (c, who) => c.cluster(who),
};

export async function readSomething(options: ReadOptions): Promise<void> {
  const { world, checker, coverage, coordinator, who, id, own } = options;
  if (own && world.chance(0.4)) {
    const name = world.pick(Object.keys(OF_TENANT));
    checker.read(who.tenant, name, await OF_TENANT[name]?.(coordinator, who, id));
    return;
  }
  const cancels = !own && world.chance(0.2);
  const name = cancels ? 'cancelJob' : world.pick(Object.keys(OF_JOB));
  const read: Read = OF_JOB[name] ?? ((c, by, job) => c.cancelJob(by, job));
  try {
    const reply = await read(coordinator, who, id);
    if (!own) checker.foreign(who.tenant, name, 'an answer');
    checker.read(who.tenant, name, reply);
  } catch (error) {
    const missing = error instanceof DroverError && error.code === 'NOT_FOUND';
    if (own && missing) checker.missing(id);
    else if (!own && missing) coverage.saw("another tenant's job not found");
    else if (!own && error instanceof DroverError) checker.foreign(who.tenant, name, error.code);
    else throw error;
  }
}
