/**
 * What a token must be allowed, by call. Checked here as well as in the gateway, because the
 * gateway is not the only way in: users may call the gRPC listener themselves.
 */
import { DroverError } from '../lib/errors.ts';
import type { Principal, Scope } from '../model/token.ts';
import type { Coordinator } from '../protocol/coordinator.ts';

const SCOPE_OF = {
  submit: 'jobs:manage',
  getJob: 'jobs:read',
  listJobs: 'jobs:read',
  cancelJob: 'jobs:manage',
  setPriority: 'jobs:manage',
  listTasks: 'jobs:read',
  listAttempts: 'jobs:read',
  listEvents: 'jobs:read',
  listCheckpoints: 'jobs:read',
  requestCheckpoint: 'jobs:manage',
  waitJob: 'jobs:read',
  readLogs: 'jobs:read',
  queue: 'jobs:read',
  why: 'jobs:read',
  receipt: 'jobs:read',
  plan: 'jobs:read',
  listBudgets: 'jobs:read',
  setBudget: 'budgets:manage',
  deleteBudget: 'budgets:manage',
  usage: 'jobs:read',
  listAudit: 'audit:read',
  recordAccess: 'jobs:manage',
  listData: 'jobs:read',
  putData: 'jobs:manage',
  removeData: 'jobs:manage',
  namedBlobs: 'fleet:manage',
  policy: 'fleet:manage',
  cluster: 'fleet:read',
  listWorkers: 'fleet:read',
  setDraining: 'fleet:manage',
  revokeWorker: 'fleet:manage',
  listPools: 'fleet:read',
  lookAtPool: 'fleet:manage',
  listInstances: 'fleet:read',
  getInstance: 'fleet:read',
  destroyInstance: 'fleet:manage',
  listHosts: 'fleet:read',
  setHost: 'fleet:manage',
  listTokens: 'tokens:manage',
  createToken: 'tokens:manage',
  revokeToken: 'tokens:manage',
  listTenants: 'jobs:read',
  setTenant: 'tenants:manage',
  listUsers: 'tokens:manage',
  setUser: 'tokens:manage',
  removeUser: 'tokens:manage',
  openTunnel: 'jobs:manage',
} as const satisfies Record<UserCall, Scope>;

/** The calls whose first argument says who is calling. */
type UserCall = {
  [Name in keyof Coordinator]: Parameters<Coordinator[Name]> extends [Principal, ...unknown[]]
    ? Name
    : never;
}[keyof Coordinator];

type Call = (who: Principal, ...rest: unknown[]) => Promise<unknown>;

export function checkScopes(coordinator: Coordinator): Coordinator {
  const checked: Partial<Record<UserCall, Call>> = {};
  for (const [name, scope] of Object.entries(SCOPE_OF) as [UserCall, Scope][]) {
    const call = coordinator[name] as Call;
    checked[name] = async (who, ...rest) => {
      if (!who.scopes.includes(scope)) throw lacks(scope);
      return call(who, ...rest);
    };
  }
  return { ...coordinator, ...(checked as Partial<Coordinator>) };
}

function lacks(scope: Scope): DroverError {
  return new DroverError('PERMISSION_DENIED', `the token lacks the scope ${scope}`, {
    hint: 'use a token that has it',
  });
}
