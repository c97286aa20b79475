/** Certificates for tests, made on the spot so that no key lies in the repository. */
import { generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';

interface Certificate {
  cert: string;
  key: string;
}

export interface Authority extends Certificate {
  /** A certificate for 127.0.0.1 and localhost, good for server and client until 2049. */
  issue(name: string, options?: { expired?: boolean }): Certificate;
}

const ECDSA_WITH_SHA256 = sequence(Buffer.from('06082a8648ce3d040302', 'hex'));
const COMMON_NAME = Buffer.from('0603550403', 'hex');
const SUBJECT_ALT_NAME = Buffer.from('0603551d11', 'hex');
const BASIC_CONSTRAINTS = Buffer.from('0603551d13', 'hex');
const VALID = '491231235959Z';
const EXPIRED = '210101000000Z';
const TRUE = Buffer.from('0101ff', 'hex');

export function createAuthority(name: string): Authority {
  const ca = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const constraints = sequence(BASIC_CONSTRAINTS, TRUE, octets(sequence(TRUE)));
  return {
    cert: certificate(name, ca.privateKey, name, ca.publicKey, constraints),
    key: pem(ca.privateKey),
    issue(subject, { expired = false } = {}) {
      const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const names = sequence(
        der(0x82, Buffer.from('localhost')),
        der(0x87, Buffer.from([127, 0, 0, 1])),
      );
      const extension = sequence(SUBJECT_ALT_NAME, octets(names));
      const until = expired ? EXPIRED : VALID;
      const cert = certificate(name, ca.privateKey, subject, pair.publicKey, extension, until);
      return { cert, key: pem(pair.privateKey) };
    },
  };
}

function certificate(
  issuer: string,
  issuerKey: KeyObject,
  subject: string,
  subjectKey: KeyObject,
  extension: Buffer,
  until = VALID,
): string {
  const body = sequence(
    der(0xa0, Buffer.from('020102', 'hex')),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    distinguishedName(issuer),
    sequence(utcTime('200101000000Z'), utcTime(until)),
    distinguishedName(subject),
    subjectKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(extension)),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, issuerKey)]);
  const whole = sequence(body, ECDSA_WITH_SHA256, der(0x03, signature)).toString('base64');
  const lines = whole.match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function distinguishedName(name: string): Buffer {
  return sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(name)))));
}

function utcTime(time: string): Buffer {
  return der(0x17, Buffer.from(time));
}

function octets(content: Buffer): Buffer {
  return der(0x04, content);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function der(tag: number, content: Buffer): Buffer {
  const size = content.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
