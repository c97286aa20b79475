/** Times in queries: ISO 8601, or milliseconds since 1970. */

const EPOCH_MS = /^\d{1,15}$/;

/** NaN for what is neither. */
export function timeOf(text: string): number {
  return EPOCH_MS.test(text) ? Number(text) : Date.parse(text);
}
