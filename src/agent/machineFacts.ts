/** What a machine is, for the record of whoever runs on it: system, driver, devices. */
import { readFileSync } from 'node:fs';
import { cpus, hostname, release } from 'node:os';
import type { AttemptOrder } from '../protocol/agent.ts';
import { AGENT_VERSION, type JoinRequest } from '../protocol/agent.ts';
import type { Step } from './around.ts';

export function createMachineFacts({ devices }: JoinRequest['resources']): Step {
  const known = machine();
  return {
    // Plain commands are told of by their worker alone: they start without a look at anything.
    needsPreparation: ({ code, inputs, environment, devices: held }) =>
      held.length > 0 ||
      code !== undefined ||
      environment !== undefined ||
      (inputs?.length ?? 0) > 0,
    async prepare({ order, facts }) {
      Object.assign(facts, known);
      const models = modelsOf(order, devices);
      if (models) facts['devices'] = models;
    },
  };
}

function machine(): Record<string, string> {
  const driver = nvidiaDriver();
  return {
    host: hostname(),
    kernel: release(),
    cpu: cpus()[0]?.model ?? 'unknown',
    agent: AGENT_VERSION,
    ...(driver && { driver }),
  };
}

function modelsOf(order: AttemptOrder, devices: JoinRequest['resources']['devices']): string {
  const models = order.devices.map(
    ({ index, kind }) => devices.find((one) => one.index === index)?.model || kind,
  );
  return models.join(', ');
}

/** As the driver itself tells it, where there is one. */
function nvidiaDriver(): string | undefined {
  try {
    const text = readFileSync('/proc/driver/nvidia/version', 'utf8');
    return / (\d+\.\d+(?:\.\d+)?) /.exec(text)?.[1];
  } catch {
    // No such driver here.
    return undefined;
  }
}
