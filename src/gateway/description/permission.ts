/** Who may call a route, for programs and in words. */
import type { Access } from '../app.ts';

export type Security = { [scheme: string]: string[] }[];

export function securityOf(access: Access): Security {
  if (access === 'open') return [];
  if (access === 'loopback') return [{}, { bearer: ['fleet:read'] }];
  return [{ bearer: access === 'agent' ? [] : [access] }];
}

export function permissionWords(access: Access, orAttempt: boolean): string {
  if (access === 'open') return 'Permission: anybody, without a token.';
  if (access === 'agent') return 'Permission: an agent, with its own token.';
  if (access === 'loopback') {
    return 'Permission: a process on the same machine; from elsewhere a token with `fleet:read`.';
  }
  const words = `Permission: a token with \`${access}\`.`;
  return orAttempt
    ? `${words} Also an agent, for an attempt it runs (header Drover-Attempt).`
    : words;
}
