/** Who asks for a proxied page, and the connection to what the task serves. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { DroverError } from '../../lib/errors.ts';
import type { Principal } from '../../model/token.ts';
import { streamDuplex } from '../../protocol/tunnel/duplex.ts';
import { parseEndpoint } from '../../protocol/tunnel/endpoint.ts';
import { bearerOf, checkScope } from '../auth/authorize.ts';
import type { TunnelHub } from '../tunnel/hub.ts';
import { taskOf } from '../tunnel/tasks.ts';
import { sessionOf } from './headers.ts';
import type { ProxySessions } from './sessions.ts';

export interface ProxyOptions {
  /** Asked when used: it is made once the gateway listens. */
  hub: () => Pick<TunnelHub, 'openStream'>;
  authenticate: (token: string) => Promise<Principal | undefined>;
  sessions: ProxySessions;
  /** Cookies only over TLS. */
  secure: boolean;
}

export interface ProxyCaller {
  who: Principal;
  /** By a cookie, so that an authorization header is the page's own. */
  byCookie: boolean;
}

export async function identify(
  request: IncomingMessage,
  endpoint: string,
  { sessions, authenticate }: ProxyOptions,
): Promise<ProxyCaller> {
  const session = sessionOf(request.headers.cookie);
  const known = session === undefined ? undefined : sessions.bearerOf(endpoint, session);
  if (known === undefined && request.headers.authorization === undefined) {
    throw new DroverError('UNAUTHENTICATED', 'this browser has no session for this page', {
      hint: 'ask for a link: drover notebook ID',
    });
  }
  const token = known ?? bearerOf(request);
  const who = checkScope(await authenticate(token), 'jobs:manage');
  return { who, byCookie: known !== undefined };
}

export async function connectEndpoint(
  who: Principal,
  endpoint: string,
  { hub }: ProxyOptions,
): Promise<Duplex> {
  const { task, place } = parseEndpoint(endpoint);
  const { kind, ...details } = place;
  return streamDuplex(
    await hub().openStream(who, taskOf(task), { kind, details, priority: 'bulk' }),
  );
}
