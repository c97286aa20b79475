/** WebSockets of proxied pages: the request passes as it came, then bytes both ways. */
import type { IncomingMessage } from 'node:http';
import { DroverError } from '../../lib/errors.ts';
import { joinDuplexes } from '../../protocol/tunnel/duplex.ts';
import { endpointPath } from '../../protocol/tunnel/endpoint.ts';
import { matchPath, type UpgradeRoute } from '../tunnel/upgrades.ts';
import { connectEndpoint, identify, type ProxyOptions } from './access.ts';
import { requestHeaders } from './headers.ts';

export function createProxyUpgrade(options: ProxyOptions): UpgradeRoute {
  return {
    path: '/proxy/{endpoint}/{path}',
    permission: 'jobs:manage',
    summary: 'WebSockets of a page that a task serves',
    match: matchPath(/^\/proxy\/([^/]+)\/.*$/s),
    async upgrade({ request, socket, head }, [endpoint = '']) {
      const { who, byCookie } = await identify(request, endpoint, options);
      if (byCookie) requireOwnOrigin(request);
      const connection = await connectEndpoint(who, endpoint, options);
      connection.write(requestHead(request, endpoint, byCookie));
      if (head.length > 0) connection.write(head);
      void joinDuplexes(socket, connection);
    },
  };
}

/** A browser sends cookies for any page that asks; only our own pages may. */
function requireOwnOrigin({ headers }: IncomingMessage): void {
  const { origin, host } = headers;
  if (origin === undefined || URL.parse(origin)?.host === host) return;
  throw new DroverError('PERMISSION_DENIED', `a page of ${origin} may not connect here`);
}

function requestHead(request: IncomingMessage, endpoint: string, byCookie: boolean): string {
  const headers = {
    ...requestHeaders(request.headers, {
      withAuthorization: byCookie,
      prefix: endpointPath(endpoint),
      address: request.socket.remoteAddress ?? '',
    }),
    connection: 'Upgrade',
    upgrade: request.headers.upgrade,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((one) => `${name}: ${one}`),
  );
  return [`GET ${request.url} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}
