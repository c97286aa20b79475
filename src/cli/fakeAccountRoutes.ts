/** The fake server's routes of plans, budgets and usage, checked by the schemas of the real one. */
import type { ServerResponse } from 'node:http';
import { DroverError } from '../lib/errors.ts';
import type { TokenId } from '../model/ids.ts';
import { SCOPES, type Principal } from '../model/token.ts';
import { budgetInput, usageQuery } from '../protocol/budgets.ts';
import type { FakeAccounts } from '../protocol/fakeAccounts.ts';
import { jobSpec } from '../protocol/jobSpec.ts';
import { problem, send, type FakeRequest } from './fakeServer.ts';

const WHO: Principal = {
  token: 't1' as TokenId,
  tenant: 'default',
  user: 'ada',
  scopes: [...SCOPES],
};

export async function answerAccounts(
  request: FakeRequest,
  response: ServerResponse,
  accounts: FakeAccounts,
): Promise<void> {
  try {
    const data = await answerOf(request, accounts);
    send(response, 200, { data, meta: {} });
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    problem(response, error.status, error.code, error.message);
  }
}

async function answerOf(request: FakeRequest, accounts: FakeAccounts): Promise<unknown> {
  const { method, path, query, body } = request;
  const [, , resource, tenant = '', , user = ''] = path.split('/').map(decodeURIComponent);
  if (resource === 'plan') return accounts.plan(WHO, jobSpec.parse(body));
  if (resource === 'usage') {
    return accounts.usage(WHO, usageQuery.parse(Object.fromEntries(query)));
  }
  if (method === 'GET') return accounts.listBudgets(WHO);
  if (method === 'DELETE') {
    await accounts.deleteBudget(WHO, tenant, user);
    return { tenant, user };
  }
  return accounts.setBudget(WHO, budgetInput.parse({ ...(body as object), tenant, user }));
}
