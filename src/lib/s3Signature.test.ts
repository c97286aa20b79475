/** Signatures as Amazon's documentation gives them for its example requests. */
import { expect, test } from 'vitest';
import { queryOf, signedHeaders, signedUrl } from './s3Signature.ts';

const signer = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
};
const atMs = Date.UTC(2013, 4, 24);
const NOTHING = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const host = 'https://examplebucket.s3.amazonaws.com';

function signatureOf(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  bodyHash = NOTHING,
): string | undefined {
  const url = new URL(host + path);
  const { authorization } = signedHeaders(signer, { method, url, headers, bodyHash }, atMs);
  return /Signature=(\w+)/.exec(authorization ?? '')?.[1];
}

test('GET with a range', () => {
  expect(signatureOf('GET', '/test.txt', { range: 'bytes=0-9' })).toBe(
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  );
});

test('PUT with a body and a name that needs escaping', () => {
  const headers = {
    date: 'Fri, 24 May 2013 00:00:00 GMT',
    'x-amz-storage-class': 'REDUCED_REDUNDANCY',
  };
  const body = '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072';
  expect(signatureOf('PUT', '/test%24file.text', headers, body)).toBe(
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  );
});

test('GET with a query', () => {
  expect(signatureOf('GET', '/?lifecycle=')).toBe(
    'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  );
  expect(signatureOf('GET', `/?${queryOf({ prefix: 'J', 'max-keys': '2' })}`)).toBe(
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  );
});

test('a signed URL', () => {
  const url = signedUrl(signer, new URL(`${host}/test.txt`), 86_400, atMs);
  expect(new URL(url).searchParams.get('X-Amz-Signature')).toBe(
    'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
  );
});
