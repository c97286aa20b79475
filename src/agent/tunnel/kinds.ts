/** Everything an agent does over a tunnel, by the kind of stream. */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { StreamHandler } from './dialer.ts';
import { createExecHandler } from './exec.ts';
import { createForwardHandler } from './forward.ts';
import { createProcessListHandler } from './processList.ts';
import { createProfileHandler } from './profile/profile.ts';
import type { FindRunning } from './running.ts';

export function tunnelKinds(options: {
  execContext: FindRunning;
  clock: Clock;
  log: Log;
}): Record<string, StreamHandler> {
  const forward = createForwardHandler(options.execContext);
  return {
    exec: createExecHandler(options),
    ssh: loadedWhenUsed(async () => (await import('./ssh/server.ts')).createSshHandler(options)),
    ps: createProcessListHandler(options),
    profile: createProfileHandler(options),
    tcp: forward,
    unix: forward,
  };
}

/** Most agents are never asked for it, and its library takes time and memory. */
function loadedWhenUsed(load: () => Promise<StreamHandler>): StreamHandler {
  let loaded: Promise<StreamHandler> | undefined;
  return async (stream) => (await (loaded ??= load()))(stream);
}
