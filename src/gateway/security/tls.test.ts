/** HTTPS on the gateway: renewed under load, with client certificates, and a quick close. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect as connectTls, type PeerCertificate } from 'node:tls';
import { Agent, request, type Dispatcher } from 'undici';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAuthority } from '../../../test/support/certificates.ts';
import { until } from '../../../test/support/wait.ts';
import { systemClock } from '../../lib/clock.ts';
import { silentLog } from '../../lib/log.ts';
import { TlsFiles } from '../../lib/tls/files.ts';
import { startTestGateway, type TestGateway } from '../testGateway.ts';

const authority = createAuthority('drover test CA');
const { cert: ca } = authority;
let folder: string;
const closers: (() => unknown)[] = [];
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-https-'));
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  rmSync(folder, { recursive: true });
});

function write(name: string, text: string): { setting: string; path: string } {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return { setting: `server.${name}`, path: file };
}

async function start(options: { clientCa?: string; publicUrl?: string } = {}) {
  const { cert, key } = authority.issue('first');
  const files = {
    cert: write('cert', cert),
    key: write('key', key),
    ...(options.clientCa ? { ca: write('ca', options.clientCa) } : {}),
  };
  const tls = new TlsFiles({ files, clock: systemClock, log: silentLog, lookMs: 20 });
  const { publicUrl = '' } = options;
  const gateway = await startTestGateway({}, { tls, publicUrl });
  closers.push(
    () => tls.close(),
    () => gateway.close(),
  );
  return { tls, gateway };
}

function dispatcher(connect: Agent.Options['connect'] & object, keepAliveTimeout = 4_000): Agent {
  const made = new Agent({ connect, keepAliveTimeout });
  closers.push(() => made.destroy());
  return made;
}

async function get(url: string, by: Dispatcher): Promise<number> {
  const { statusCode, body } = await request(`${url}/healthz`, { dispatcher: by });
  await body.dump();
  return statusCode;
}

function shown(gateway: TestGateway): Promise<PeerCertificate> {
  const socket = connectTls({ port: Number(new URL(gateway.url).port), host: '127.0.0.1', ca });
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
  });
}

test('its URL is https, and only who trusts its authority gets through', async () => {
  const { gateway } = await start({ publicUrl: 'https://drover.example.org' });
  expect(gateway.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  const trusting = dispatcher({ ca });
  expect(await get(gateway.url, trusting)).toBe(200);
  await expect(get(gateway.url, dispatcher({}))).rejects.toMatchObject({
    code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  });
  const { headers, body } = await request(`${gateway.url}/healthz`, { dispatcher: trusting });
  await body.dump();
  expect(headers['strict-transport-security']).toBe('max-age=31536000');
  const plain = gateway.url.replace('https', 'http');
  await expect(get(plain, dispatcher({}))).rejects.toThrow();
});

test('a renewal under load drops no request, and shows at once', async () => {
  const { tls, gateway } = await start();
  const kept = dispatcher({ ca });
  const load = { isOver: false };
  let answered = 0;
  const failures: unknown[] = [];
  const run = async (fresh: boolean): Promise<void> => {
    while (!load.isOver) {
      const by = fresh ? new Agent({ connect: { ca } }) : kept;
      try {
        if ((await get(gateway.url, by)) === 200) answered++;
      } catch (error) {
        failures.push(error);
      } finally {
        if (fresh) await by.close();
      }
    }
  };
  const loads = [false, false, false, true, true].map(run);
  const names: string[] = [];
  for (const name of ['second', 'third', 'fourth']) {
    const { cert, key } = authority.issue(name);
    write('cert', cert);
    write('key', key);
    const before = answered;
    await until(`${name} is taken`, () => tls.cert === cert && answered > before + 20);
    names.push(String((await shown(gateway)).subject.CN));
  }
  load.isOver = true;
  await Promise.all(loads);
  expect(failures).toEqual([]);
  expect(names).toEqual(['second', 'third', 'fourth']);
  expect(tls.renewals).toBe(3);
  write('cert', 'broken');
  await until('the broken one is counted', () => tls.failures === 1);
  expect((await shown(gateway)).subject.CN).toBe('fourth');
  const { body } = await request(`${gateway.url}/metrics`, { dispatcher: kept });
  const text = await body.text();
  expect(text).toContain('drover_gateway_certificate_renewals_total{outcome="taken"} 3');
  expect(text).toContain('drover_gateway_certificate_renewals_total{outcome="refused"} 1');
  expect(text).toMatch(/drover_gateway_certificate_expires_timestamp_seconds 2524607999/);
});

test('with an authority for clients, only those it signed get in', async () => {
  const others = createAuthority('another CA');
  const { gateway } = await start({ clientCa: ca });
  expect(await get(gateway.url, dispatcher({ ca, ...authority.issue('ada') }))).toBe(200);
  for (const shows of [{}, others.issue('eve'), authority.issue('old', { expired: true })]) {
    await expect(get(gateway.url, dispatcher({ ca, ...shows }))).rejects.toThrow();
  }
});

test('a close does not wait for who only connected, or broke the protocol', async () => {
  const { gateway } = await start();
  const idle = connectPlain(Number(new URL(gateway.url).port), '127.0.0.1');
  idle.on('error', () => undefined);
  await new Promise((resolve) => idle.once('connect', resolve));
  expect(await get(gateway.url, dispatcher({ ca }))).toBe(200);
  expect(await renegotiate(gateway)).toContain('no renegotiation');
  const begun = performance.now();
  await gateway.close();
  expect(performance.now() - begun).toBeLessThan(2_000);
});

/** What openssl says about a connection that it wants to begin anew. */
function renegotiate(gateway: TestGateway): Promise<string> {
  const to = new URL(gateway.url).host;
  return new Promise((resolve) => {
    const args = ['s_client', '-connect', to, '-tls1_2'];
    const child = execFile('openssl', args, (_error, stdout, stderr) => resolve(stdout + stderr));
    child.stdin?.end('R\n');
  });
}
