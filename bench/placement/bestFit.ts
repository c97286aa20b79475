/** Best fit: the node that has least left afterwards, over CPU and devices. */
import type { Policy } from './experiment.ts';
import { nodePolicy, WHOLE } from './nodes.ts';
import type { TraceNode } from './traces.ts';

export function bestFit(nodes: readonly TraceNode[]): Policy {
  const mostCpu = Math.max(...nodes.map(({ cpuMillis }) => cpuMillis));
  const mostDevices = Math.max(...nodes.map(({ devices }) => devices));
  return nodePolicy(nodes, (_before, after) => {
    const devices = after.devices.reduce((sum, free) => sum + free, 0);
    return after.cpuFree / mostCpu + devices / (mostDevices * WHOLE);
  });
}
