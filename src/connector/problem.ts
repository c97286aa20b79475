/** What a relay answers by itself, in the shape of the gateway's problems. */
import { ERRORS } from '../lib/errors.ts';

export interface Refusal {
  code: 'NOT_FOUND' | 'UNAVAILABLE';
  status: number;
  detail: string;
  hint: string;
}

export const UNKNOWN: Refusal = {
  code: 'NOT_FOUND',
  status: ERRORS.NOT_FOUND.status,
  detail: 'a connector passes on what agents need and nothing else',
  hint: 'ask the gateway itself',
};

export const UNREACHABLE: Refusal = {
  code: 'UNAVAILABLE',
  status: ERRORS.UNAVAILABLE.status,
  detail: 'the connector does not reach the gateway',
  hint: 'try again; the log of drover connector says why',
};

export function problemText({ code, status, detail, hint }: Refusal, url = ''): string {
  const path = url.replace(/\?.*$/s, '').slice(0, 200);
  return JSON.stringify({ title: ERRORS[code].title, status, code, detail, hint, path });
}
