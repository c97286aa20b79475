/**
 * testssl.sh on the gateway's listener. Here the checks that settings of ours decide; all of them
 * by `make check-tls`.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { startTestGateway } from '../../src/gateway/testGateway.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLog } from '../../src/lib/log.ts';
import { TlsFiles } from '../../src/lib/tls/files.ts';
import { type } from '../support/journey.ts';
import { programsAreHere } from '../support/programs.ts';

interface Finding {
  id: string;
  severity: string;
  finding: string;
}

/** WARN is what the scanner could not look at: what must be seen is asked for below. */
const GRAVE = new Set(['MEDIUM', 'HIGH', 'CRITICAL', 'FATAL']);

/** Of the test's own authority. */
const NOT_OURS: Record<string, string> = {
  cert_chain_of_trust: 'the authority was made for this test',
  cert_revocation: 'an authority of a lab has no server for it',
};

/** Protocols, kinds of ciphers, headers, renegotiation. */
const BOUNDED = ['-p', '-s', '-h', '-R'];
const LIMIT_MS = 600_000;

test('nothing above LOW that is ours to change', { timeout: LIMIT_MS }, async () => {
  if (!programsAreHere({ testssl: 'testssl.sh', openssl: 'openssl' })) return;
  const folder = mkdtempSync(path.join(tmpdir(), 'drover-testssl-'));
  makeCertificate(folder);
  const files = {
    cert: { setting: 'server.certFile', path: path.join(folder, 'cert.pem') },
    key: { setting: 'server.keyFile', path: path.join(folder, 'key.pem') },
  };
  const tls = new TlsFiles({ files, clock: systemClock, log: silentLog });
  const publicUrl = 'https://localhost';
  const gateway = await startTestGateway({}, { tls, publicUrl });
  try {
    const report = path.join(folder, 'report.json');
    const checks = process.env['TESTSSL'] === 'all' ? [] : BOUNDED;
    const how = ['--quiet', '--warnings', 'off', '--color', '0', '--nodns', 'none'];
    const args = [...how, ...checks, '--jsonfile', report, gateway.url];
    const { code, stdout } = await type('testssl', args, { env: { HOME: folder } }).ended;
    const findings = JSON.parse(readFileSync(report, 'utf8')) as Finding[];
    const grave = findings.filter(
      ({ id, severity }) => GRAVE.has(severity) && !Object.hasOwn(NOT_OURS, id.split(' ')[0] ?? ''),
    );
    expect(grave, `testssl ended with ${code}:\n${stdout}`).toEqual([]);
    // A scan that saw nothing finds nothing.
    const of = (id: string) => findings.find((one) => one.id.startsWith(id))?.finding;
    expect([of('TLS1'), of('TLS1_2'), of('TLS1_3')]).toEqual([
      'not offered',
      'offered',
      expect.stringContaining('offered with final'),
    ]);
    expect(of('HSTS_time')).toContain('365 days');
  } finally {
    await gateway.close();
    tls.close();
    rmSync(folder, { recursive: true });
  }
});

/** As docs/tls.md says. */
function makeCertificate(cwd: string): void {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd, stdio: 'pipe' });
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n';
  writeFileSync(path.join(cwd, 'server.ext'), names);
  const newKey = ['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out'];
  openssl(...newKey, 'ca.key');
  openssl(
    'req',
    '-x509',
    '-new',
    '-key',
    'ca.key',
    '-days',
    '3650',
    '-subj',
    '/CN=lab CA',
    '-out',
    'ca.pem',
  );
  openssl(...newKey, 'key.pem');
  openssl('req', '-new', '-key', 'key.pem', '-subj', '/CN=localhost', '-out', 'server.csr');
  openssl(
    'x509',
    '-req',
    '-in',
    'server.csr',
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-days',
    '90',
    '-extfile',
    'server.ext',
    '-out',
    'cert.pem',
  );
}
