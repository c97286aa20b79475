/**
 * `/v1/tasks/{task}/tunnel`: a client's own tunnel, of which each stream is joined with one to the
 * task's machine: port-forward, ssh, ps, profile. See protocol/tunnel/inside.ts.
 */
import { WebSocketServer } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Principal } from '../../model/token.ts';
import { joinDuplexes, streamDuplex } from '../../protocol/tunnel/duplex.ts';
import { INSIDE_PATH, INSIDE_PROTOCOL, parseInside } from '../../protocol/tunnel/inside.ts';
import { TUNNEL_LIMITS } from '../../protocol/tunnel/limits.ts';
import { webSocketMessages } from '../../protocol/tunnel/messageSocket.ts';
import type { TunnelStream } from '../../protocol/tunnel/stream.ts';
import { Tunnel } from '../../protocol/tunnel/tunnel.ts';
import type { Authorize } from '../auth/authorize.ts';
import type { TunnelHub } from './hub.ts';
import { taskOf } from './tasks.ts';
import { matchPath, requireProtocol, type UpgradeRoute } from './upgrades.ts';

export interface InsideRouteOptions {
  hub: Pick<TunnelHub, 'openStream'>;
  authorize: Authorize;
  clock: Clock;
  log: Log;
}

export function createInsideRoute(options: InsideRouteOptions): UpgradeRoute {
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: TUNNEL_LIMITS.frameBytes,
    handleProtocols: () => INSIDE_PROTOCOL,
  });
  return {
    path: '/v1/tasks/{task}/tunnel',
    permission: 'jobs:manage',
    summary: 'Ports, ssh, processes and profiles of a running task',
    match: matchPath(INSIDE_PATH),
    async upgrade({ request, socket, head }, [target = '']) {
      const who = await options.authorize(request, 'jobs:manage');
      requireProtocol(request, INSIDE_PROTOCOL);
      const task = taskOf(target);
      server.handleUpgrade(request, socket, head, (webSocket) => {
        const tunnel = new Tunnel({
          socket: webSocketMessages(webSocket),
          // The client opens streams, so this end accepts them, as an agent does.
          side: 'agent',
          clock: options.clock,
          onStream: (stream) => void serve(stream, who, task, options),
        });
        void tunnel.closed.then((reason) => options.log.debug({ task, reason }, 'a client left'));
      });
    },
  };
}

async function serve(
  client: TunnelStream,
  who: Principal,
  task: string,
  options: InsideRouteOptions,
): Promise<void> {
  try {
    const { kind, ...details } = parseInside(client.header);
    const priority = kind === 'ps' ? 'interactive' : 'bulk';
    const machine = await options.hub.openStream(who, task, { kind, details, priority });
    await joinDuplexes(streamDuplex(client), streamDuplex(machine));
  } catch (error) {
    const isExpected = error instanceof DroverError;
    if (!isExpected) options.log.error({ task, error: String(error) }, 'a stream failed');
    const message = isExpected ? error.message : 'the stream failed inside Drover';
    client.reset(isExpected ? error.code : 'INTERNAL', message);
  }
}
