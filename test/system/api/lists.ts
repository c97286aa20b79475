/**
 * What is deliberately not guarded by a scope, and what deliberately reaches over tenants. A route
 * that is on none of these lists is walked without a token (401), with too little (403) and as
 * another tenant (404).
 */

/** Anybody may call these; they hold nothing of anybody. */
export const OPEN = [
  'GET /healthz',
  // The agent as one file, and how it joins: without a token it is good for nothing.
  'GET /install/agent',
  'GET /install/agent.gz',
  'GET /install/agent.sha256',
  'GET /install/join.sh',
  'GET /install/version',
  'GET /openapi.json',
  'GET /readyz',
  'GET /reference',
  // The page's own files.
  'GET /reference/search.js',
  'GET /reference/style.css',
  // A link that is good once; then the cookie or a token is asked for by the handler.
  'GET /proxy/{endpoint}/drover-login',
];

/** Free on the gateway's own machine; from elsewhere with fleet:read. */
export const LOOPBACK = ['GET /metrics'];

/** With an agent's own token, which the controller checks. */
export const AGENT = [
  'POST /drover.v1.Agent/AddCheckpoint',
  'POST /drover.v1.Agent/AppendLogs',
  'POST /drover.v1.Agent/AttemptSecrets',
  'POST /drover.v1.Agent/AttemptTokens',
  'POST /drover.v1.Agent/ExchangeCommands',
  'POST /drover.v1.Agent/Join',
  'POST /drover.v1.Agent/Sync',
];

/** A cookie or a token is asked for by the handler, so that pages can send tokens of their own. */
export const PROXIED = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map(
  (method) => `${method} /proxy/{endpoint}/*`,
);

export const WEBSOCKETS = {
  '/v1/tunnel': 'ticket',
  '/v1/tasks/{task}/exec': 'jobs:manage',
  '/v1/tasks/{task}/tunnel': 'jobs:manage',
  '/proxy/{endpoint}/{path}': 'jobs:manage',
};

const OWN_BUDGETS = {
  status: 403,
  because: 'whatever there is or not: budgets of others need tenants:manage',
};

/** As another tenant these do not answer 404, and why that gives nothing away. */
export const NOT_404: Record<string, { status: number; because: string }> = {
  setUser: { status: 200, because: 'users are by tenant: it is one of its own of that name' },
  removeUser: { status: 200, because: 'the same: nobody of that name was in its tenant' },
  getInstance: { status: 200, because: 'machines are nobody’s; whose work they serve is not told' },
  setTenantBudget: OWN_BUDGETS,
  deleteTenantBudget: OWN_BUDGETS,
  setUserBudget: OWN_BUDGETS,
  deleteUserBudget: OWN_BUDGETS,
  putBlob: { status: 201, because: 'a copy of its own: bytes are kept by tenant' },
};
