/**
 * Inputs from any S3: an object, or all below a prefix, by the agent's own AWS_* variables, or
 * without where public.
 */
import { hash } from 'node:crypto';
import { request as send } from 'undici';
import { encodePath, queryOf, signedHeaders, type Signer } from '../../lib/s3Signature.ts';
import { elements, textOf } from '../../lib/s3Xml.ts';
import { Unprepared } from '../runtimes/around.ts';
import type { Request } from './download.ts';
import { FOLDER_FILES, fetchFolder } from './folder.ts';
import { fetchFile } from './fromHttp.ts';
import type { Arrival, Source } from './source.ts';

const EMPTY_BODY = hash('sha256', '');
const DEFAULT_REGION = 'us-east-1';
const SILENCE_MS = 60_000;

/** A key that ends in a slash is all that lies below it, as a folder. */
export const fromS3: Source = async (arrival) => {
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]+)\/(.*)$/s.exec(arrival.input.uri) ?? [];
  if (!bucket) {
    const { name, uri } = arrival.input;
    throw new Unprepared(
      `input ${name}: ${uri} names no object; write s3://BUCKET/KEY, or s3://BUCKET/PREFIX/`,
    );
  }
  const base = bucketUrl(bucket, arrival.env);
  const headers = signing(arrival.env);
  const request = (at: string): Request => ({ url: `${base}/${encodePath(at)}`, headers });
  if (key !== '' && !key.endsWith('/')) return fetchFile(arrival, request(key));
  const names = await listKeys(arrival, base, key, headers);
  return fetchFolder(arrival, names, (own, name) => fetchFile(own, request(key + name)));
};

type Headers = NonNullable<Request['headers']>;

function signing(env: Arrival['env']): Headers {
  const signer = signerOf(env);
  const token = env['AWS_SESSION_TOKEN'];
  const own: Record<string, string> = token ? { 'x-amz-security-token': token } : {};
  return (at) => {
    if (!signer) return {};
    const request = { method: 'GET', url: new URL(at), headers: own, bodyHash: EMPTY_BODY };
    return signedHeaders(signer, request, Date.now());
  };
}

function bucketUrl(bucket: string, env: Arrival['env']): string {
  const endpoint = env['AWS_ENDPOINT_URL_S3'] || env['AWS_ENDPOINT_URL'];
  if (endpoint) return `${endpoint.replace(/\/+$/, '')}/${bucket}`;
  return `https://${bucket}.s3.${regionOf(env)}.amazonaws.com`;
}

/** What follows the prefix, page by page. Keys that end in a slash stand for folders. */
async function listKeys(
  arrival: Arrival,
  base: string,
  prefix: string,
  headers: Headers,
): Promise<string[]> {
  const names: string[] = [];
  let token = '';
  do {
    const query = queryOf({
      'list-type': '2',
      prefix,
      ...(token ? { 'continuation-token': token } : {}),
    });
    const text = await getList(arrival, `${base}/?${query}`, headers);
    for (const entry of elements(text, 'Contents')) {
      const name = textOf(entry, 'Key').slice(prefix.length);
      if (name !== '' && !name.endsWith('/')) names.push(name);
    }
    token = textOf(text, 'NextContinuationToken');
  } while (token && names.length <= FOLDER_FILES);
  return names;
}

async function getList(
  { input: { name, uri }, signal }: Arrival,
  url: string,
  headers: Headers,
): Promise<string> {
  const timeouts = { headersTimeout: SILENCE_MS, bodyTimeout: SILENCE_MS };
  let status;
  let text;
  try {
    const answer = await send(url, { headers: headers(url), signal, ...timeouts });
    status = answer.statusCode;
    text = await answer.body.text();
  } catch (error) {
    if (signal.aborted) throw error;
    const message = `input ${name} cannot be had: ${(error as Error).message}`;
    throw new Unprepared(message, { hostFault: true, cause: error });
  }
  if (status === 200) return text;
  const why = textOf(text, 'Message') || textOf(text, 'Code');
  const message = `input ${name}: its server answered ${status} to a list of ${uri}: ${why}`;
  throw new Unprepared(message, { hostFault: status >= 500 });
}

function signerOf(env: Arrival['env']): Signer | undefined {
  const accessKeyId = env['AWS_ACCESS_KEY_ID'];
  const secretAccessKey = env['AWS_SECRET_ACCESS_KEY'];
  if (!accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, region: regionOf(env) };
}

function regionOf(env: Arrival['env']): string {
  return env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || DEFAULT_REGION;
}
