/** grpc.health.v1.Health: the controller's readiness in the words every gRPC client knows. */
import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect';
import type { Log } from '../../lib/log.ts';
import { Agent } from '../gen/drover/v1/agent_pb.ts';
import { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../gen/grpc/health/v1/health_pb.ts';
import type { ServiceOptions } from './coordinatorService.ts';

/** How soon a watcher learns of a change. */
const WATCH_PERIOD_MS = 1_000;
/** Empty is the whole server. All of them stand or fall with the controller. */
const SERVICES = ['', CoordinatorService.typeName, Agent.typeName];

export function healthService(options: ServiceOptions & { log: Log }): ServiceImpl<typeof Health> {
  const { coordinator, closing, log } = options;
  const status = async (): Promise<Status> => {
    if (closing.aborted) return Status.NOT_SERVING;
    try {
      return (await coordinator.readiness()).ready ? Status.SERVING : Status.NOT_SERVING;
    } catch (error) {
      log.warn({ error: String(error) }, 'readiness could not be read');
      return Status.NOT_SERVING;
    }
  };
  return {
    async check({ service }) {
      if (!SERVICES.includes(service)) {
        throw new ConnectError(`unknown service ${JSON.stringify(service)}`, Code.NotFound);
      }
      return { status: await status() };
    },
    async list() {
      const now = await status();
      return { statuses: Object.fromEntries(SERVICES.map((name) => [name, { status: now }])) };
    },
    async *watch({ service }, context) {
      const known = SERVICES.includes(service);
      const ended = AbortSignal.any([context.signal, closing]);
      let last: Status | undefined;
      while (!context.signal.aborted) {
        const now = known ? await status() : Status.SERVICE_UNKNOWN;
        if (now !== last) yield { status: now };
        last = now;
        if (closing.aborted) return;
        await pause(WATCH_PERIOD_MS, ended);
      }
    },
  };
}

/** Returns early when the signal comes. */
function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, delayMs);
    signal.addEventListener('abort', done, { once: true });
  });
}
