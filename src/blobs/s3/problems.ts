/** What S3 answers when it refuses, as errors that say which setting to look at. */
import { DroverError } from '../../lib/errors.ts';
import { textOf } from '../../lib/s3Xml.ts';

interface Place {
  endpoint: string;
  region: string;
  bucket: string;
}

interface Refused {
  status: number;
  text: string;
}

const OF_CREDENTIALS = new Set([
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'AccessDenied',
  'InvalidToken',
  'ExpiredToken',
]);

export function refusal({ status, text }: Refused, place: Place): DroverError {
  const code = textOf(text, 'Code') || `status ${status}`;
  const unavailable = (what: string, hint: string): DroverError =>
    new DroverError('UNAVAILABLE', `The bucket ${place.bucket} ${what} (${code})`, { hint });
  if (code === 'NoSuchBucket') {
    return unavailable('does not exist', 'See blobs.bucket, blobs.endpoint and region.');
  }
  if (OF_CREDENTIALS.has(code) || status === 401 || status === 403) {
    const hint =
      'The administrator checks blobs.accessKeyId and its secret, and that it may read, write, ' +
      'list and delete in the bucket.';
    return unavailable('refuses the credentials of the blob store', hint);
  }
  if (code === 'RequestTimeTooSkewed') {
    return unavailable('finds the time of this machine wrong', 'Set its clock (timedatectl).');
  }
  if (status >= 300 && status < 400) {
    return unavailable(`is not in ${place.region}`, 'See blobs.region and blobs.endpoint.');
  }
  if (status === 507 || code === 'QuotaExceeded' || code === 'XMinioStorageFull') {
    const detail = `The bucket ${place.bucket} is full (${code})`;
    return new DroverError('NO_SPACE', detail, { hint: 'Nothing was stored. Remove blobs there.' });
  }
  return unavailable('cannot do what was asked', textOf(text, 'Message') || 'Try again.');
}

export function noAnswer(error: unknown, { endpoint, region }: Place): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof DroverError || typeof code !== 'string') return error;
  const detail = `The S3 of the blob store does not answer (${code})`;
  const hint = `Try again; the administrator checks blobs.endpoint (${endpoint || region}).`;
  return new DroverError('UNAVAILABLE', detail, { hint, cause: error });
}
