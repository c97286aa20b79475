/** AWS Signature Version 4 for S3: in headers for our own calls, in the URL for those of others. */
import { createHmac, hash } from 'node:crypto';

export interface Signer {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
}

const ALGORITHM = 'AWS4-HMAC-SHA256';

export interface Signable {
  method: string;
  url: URL;
  /** Lower-case names; `host` is added. */
  headers: Record<string, string>;
  /** SHA-256 of the body, as 64 digits. */
  bodyHash: string;
}

/** The headers to send: those given, and what proves who sends them. */
export function signedHeaders(
  signer: Signer,
  request: Signable,
  nowMs: number,
): Record<string, string> {
  const at = amzDate(nowMs);
  const { host: _, ...own } = request.headers;
  const headers = { ...own, 'x-amz-date': at, 'x-amz-content-sha256': request.bodyHash };
  const all = { ...headers, host: request.url.host };
  const signature = sign(signer, { ...request, headers: all }, at);
  const names = Object.keys(all).toSorted().join(';');
  const proof = `SignedHeaders=${names}, Signature=${signature}`;
  const credential = `${signer.accessKeyId}/${scope(signer, at)}`;
  return { ...headers, authorization: `${ALGORITHM} Credential=${credential}, ${proof}` };
}

/** A GET that anybody may send for `ttlSeconds`. */
export function signedUrl(signer: Signer, url: URL, ttlSeconds: number, nowMs: number): string {
  const at = amzDate(nowMs);
  const signed = new URL(url);
  signed.search = queryOf({
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${signer.accessKeyId}/${scope(signer, at)}`,
    'X-Amz-Date': at,
    'X-Amz-Expires': String(ttlSeconds),
    'X-Amz-SignedHeaders': 'host',
  });
  const headers = { host: signed.host };
  const request = { method: 'GET', url: signed, headers, bodyHash: 'UNSIGNED-PAYLOAD' };
  const signature = sign(signer, request, at);
  signed.search += `&X-Amz-Signature=${signature}`;
  return signed.href;
}

/** As S3 wants it: sorted, and everything but letters, digits and -_.~ as percent signs. */
export function queryOf(parameters: Record<string, string>): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .toSorted()
    .join('&');
}

export function encodePath(path: string): string {
  return path.split('/').map(encode).join('/');
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sign(signer: Signer, request: Signable, at: string): string {
  const names = Object.keys(request.headers).toSorted();
  const canonical = [
    request.method,
    request.url.pathname,
    request.url.search.slice(1),
    ...names.map((name) => `${name}:${request.headers[name]!.trim().replace(/ +/g, ' ')}`),
    '',
    names.join(';'),
    request.bodyHash,
  ].join('\n');
  const text = [ALGORITHM, at, scope(signer, at), hash('sha256', canonical, 'hex')].join('\n');
  const parts = [at.slice(0, 8), signer.region, 's3', 'aws4_request'];
  const start: string | Buffer = `AWS4${signer.secretAccessKey}`;
  const key = parts.reduce<string | Buffer>((last, part) => hmac(last, part), start);
  return hmac(key, text).toString('hex');
}

function scope({ region }: Signer, at: string): string {
  return `${at.slice(0, 8)}/${region}/s3/aws4_request`;
}

/** 20261115T134500Z */
function amzDate(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
