/** The ends of token exchange on the wire: how we are known to a real server, and who gets what. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { exchangeOf } from '../../src/bin/exchange.ts';
import { silentLog } from '../../src/lib/log.ts';
import { exchangeSettings } from '../../src/model/exchangeSettings.ts';
import type { JobId, TokenId } from '../../src/model/ids.ts';
import { createGrpcCoordinator } from '../../src/protocol/grpc/client.ts';
import { KEY_CLIENT, startExchangeServer } from './exchangeServer.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'drover-exchange-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a client by its key, and refresh tokens by a second exchange', async () => {
  const issuer = await startExchangeServer({ dave: 'physics' });
  issuer.unvouched.add('dave');
  const keyFile = path.join(folder, 'key.pem');
  writeFileSync(keyFile, issuer.clientKey.export({ type: 'pkcs8', format: 'pem' }));
  const masterKeyFile = path.join(folder, 'master.keys');
  writeFileSync(masterKeyFile, `k1:${randomBytes(32).toString('base64')}\n`);
  const exchange = exchangeSettings.parse({
    ...{ issuer: issuer.issuer, clientId: KEY_CLIENT, keyFile },
    ...{ refresh: 'refresh-token', masterKeyFile },
    audiences: { storage: { audience: 'https://drive', scope: 'files.read' } },
  });
  const opened = exchangeOf(exchange, silentLog);
  const identity = { issuer: issuer.issuer, subject: 'dave' };
  const dave = { token: 't1' as TokenId, tenant: 'physics', user: 'dave', scopes: [], identity };
  const { downstream } = (await opened?.accompany(dave, await issuer.login('dave'))) ?? {};
  expect(downstream).toMatchObject({ audiences: ['storage'], refused: [] });
  const row = { ...downstream!, job: 'j1' as JobId, tenant: 'physics' };
  const reseal = (_from: string, to: string): void => void (row.sealed = to);
  const before = row.sealed;
  const got = await opened?.minter.mint({ current: () => row, reseal }, 'storage');
  expect(got?.kind).toBe('granted');
  expect(row.sealed).not.toBe(before);
  await issuer.close();
});

test('a foreign coordinator gets them as metadata, beside who calls', async () => {
  const headers = Promise.withResolvers<Record<string, unknown>>();
  const foreign = createServer();
  foreign.on('stream', (stream, received) => {
    headers.resolve(received);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '14' });
    stream.end();
  });
  await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve));
  const url = `grpc://127.0.0.1:${(foreign.address() as AddressInfo).port}`;
  const coordinator = createGrpcCoordinator({ url, apiSecret: 'a-secret-of-both-ends' });
  const who = { token: 't1' as TokenId, tenant: 'physics', user: 'ada', scopes: [] };
  const request = { specs: [], idempotencyKey: null, bodyHash: null };
  const downstreamTokens = { 'x-scaidrive-token': 'T1', 'x-tenant-id': 'biology' };
  const call = coordinator.submit(who, { ...request, downstreamTokens });
  await expect(call).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(await headers.promise).toMatchObject({
    ...{ 'x-scaidrive-token': 'T1', 'x-tenant-id': 'physics', 'x-user-id': 'ada' },
  });
  coordinator.close();
  foreign.close();
});
