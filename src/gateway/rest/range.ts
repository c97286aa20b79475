/** The Range header of a GET, for one range of bytes. */
import type { IncomingHttpHeaders } from 'node:http';

interface Range {
  start: number;
  end: number;
}

const ONE_RANGE = /^bytes=(\d*)-(\d*)$/;

/**
 * Undefined where all is wanted: also for what cannot be read and for several ranges at once, as
 * RFC 9110 allows. `outside` where it begins behind the end.
 */
export function rangeOf(
  headers: IncomingHttpHeaders,
  etag: string,
  size: number,
): Range | 'outside' | undefined {
  const condition = headers['if-range'];
  const [, first, last] = ONE_RANGE.exec(headers.range ?? '') ?? [];
  if (first === undefined || last === undefined || (condition && condition !== etag)) {
    return undefined;
  }
  if (first === '') {
    if (last === '') return undefined;
    const length = Math.min(Number(last), size);
    return length === 0 ? 'outside' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return undefined;
  return start >= size ? 'outside' : { start, end };
}
