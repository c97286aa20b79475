/** Inputs from any S3: one object, by the agent's own AWS_* variables, or without where public. */
import { hash } from 'node:crypto';
import { encodePath, signedHeaders, type Signer } from '../../lib/s3Signature.ts';
import { Unprepared } from '../runtimes/around.ts';
import { fetchFile } from './fromHttp.ts';
import type { Arrival, Source } from './source.ts';

const EMPTY_BODY = hash('sha256', '');
const DEFAULT_REGION = 'us-east-1';

export const fromS3: Source = (arrival) => {
  const url = objectUrl(arrival);
  const signer = signerOf(arrival.env);
  const token = arrival.env['AWS_SESSION_TOKEN'];
  const own: Record<string, string> = token ? { 'x-amz-security-token': token } : {};
  const headers = (at: string): Record<string, string> => {
    if (!signer) return {};
    const request = { method: 'GET', url: new URL(at), headers: own, bodyHash: EMPTY_BODY };
    return signedHeaders(signer, request, Date.now());
  };
  return fetchFile(arrival, { url, headers });
};

function objectUrl({ input: { name, uri }, env }: Arrival): string {
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/s.exec(uri) ?? [];
  if (!bucket || !key || key.endsWith('/')) {
    throw new Unprepared(`input ${name}: ${uri} names no object; write s3://BUCKET/KEY`);
  }
  const endpoint = env['AWS_ENDPOINT_URL_S3'] || env['AWS_ENDPOINT_URL'];
  if (endpoint) return `${endpoint.replace(/\/+$/, '')}/${bucket}/${encodePath(key)}`;
  return `https://${bucket}.s3.${regionOf(env)}.amazonaws.com/${encodePath(key)}`;
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
