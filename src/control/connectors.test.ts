/** Who may stand for a site: whoever holds a join token of one of its pools, while that is good. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { JOIN_SECRET, TestController } from '../../test/support/testController.ts';
import { freePool } from '../core/placement/admission.ts';
import { seededRandom } from '../lib/random.ts';
import { createToken, type CreateToken } from '../protocol/fleet.ts';
import { Connectors } from '../providers/remote/connectors.ts';
import { createJoinSecrets } from './pools/joinSecrets.ts';

const SITES: Record<string, string> = { beta: 'hpc', gamma: 'other' };
let it: TestController;
let connectors: Connectors;

beforeEach(async () => {
  const pools = ['default', 'beta', 'gamma'].map((name) => freePool(name));
  it = await new TestController({
    pools,
    connectors: (clock) => {
      connectors = new Connectors(clock, seededRandom(1));
      return {
        exchange: (site, exchange) => connectors.exchange(site, exchange),
        inContact: (site) => connectors.inContact(site),
        siteOf: (pool) => SITES[pool],
      };
    },
  }).start();
});
afterEach(() => it.close());

async function token(fields: Partial<CreateToken>): Promise<{ id: string; secret: string }> {
  const asked = createToken.parse({ kind: 'join', pool: 'beta', ...fields });
  const { id, secret } = await it.clock.run(it.it.createToken(it.admin, asked));
  return { id, secret: secret ?? '' };
}

function exchange(secret: string, more: object = {}) {
  const request = { site: 'hpc', connector: 'a', results: [], wait: false, ...more };
  return it.clock.run(it.it.exchangeCommands(secret, request));
}

test('commands of the site are fetched, and what they said comes back', async () => {
  const { secret } = await token({});
  expect(await exchange(secret)).toEqual({ commands: [] });
  const running = connectors.shell('hpc').run(['squeue']);
  const { commands } = await exchange(secret);
  expect(commands).toMatchObject([{ argv: ['squeue'] }]);
  const results = commands.map(({ id }) => ({
    ...{ id, kind: 'ended', code: 0, stdout: 'none\n', stderr: '' },
  }));
  await exchange(secret, { results });
  expect(await running).toMatchObject({ kind: 'ended', stdout: 'none\n' });
});

test('where it waits, the call is held until there is one', async () => {
  const { secret } = await token({});
  const request = { site: 'hpc', connector: 'a', results: [], wait: true };
  const held = it.it.exchangeCommands(secret, request);
  await it.clock.advance(1000);
  void connectors.shell('hpc').run(['sinfo'], { timeoutMs: 1000 });
  expect(await it.clock.run(held)).toMatchObject({ commands: [{ argv: ['sinfo'] }] });
  const empty = it.it.exchangeCommands(secret, request);
  await it.clock.advance(20_000);
  expect(await empty).toEqual({ commands: [] });
});

test.each<[string, () => string | Promise<string>, string]>([
  ['of no site', () => JOIN_SECRET, 'PERMISSION_DENIED'],
  ['of another site', async () => (await token({ pool: 'gamma' })).secret, 'PERMISSION_DENIED'],
  ['unknown', () => 'drj_unknown', 'UNAUTHENTICATED'],
  ['of a user', () => 'drv_test', 'UNAUTHENTICATED'],
  ['of a machine', () => createJoinSecrets('s').ofPool('beta'), 'UNAUTHENTICATED'],
])('a token %s is refused', async (_, secret, code) => {
  await expect(exchange(await secret())).rejects.toMatchObject({ code });
});

test('so is one that was revoked, and one that ran out', async () => {
  const { id, secret } = await token({});
  await it.clock.run(it.it.revokeToken(it.admin, id));
  await expect(exchange(secret)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  const short = await token({ expiresInMs: 60_000 });
  await exchange(short.secret);
  await it.clock.advance(61_000);
  await expect(exchange(short.secret)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
});
