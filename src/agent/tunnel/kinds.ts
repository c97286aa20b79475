/** Everything an agent does over a tunnel, by the kind of stream. */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { StreamHandler } from './dialer.ts';
import { createExecHandler } from './exec.ts';
import { createForwardHandler } from './forward.ts';
import type { FindRunning } from './running.ts';

export function tunnelKinds(options: {
  execContext: FindRunning;
  clock: Clock;
  log: Log;
}): Record<string, StreamHandler> {
  const forward = createForwardHandler(options.execContext);
  return { exec: createExecHandler(options), tcp: forward, unix: forward };
}
