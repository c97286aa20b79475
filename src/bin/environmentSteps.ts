/** What commands run in, as an agent's settings and its machine allow it. */
import { join } from 'node:path';
import type { Step } from '../agent/around.ts';
import { containerSteps, sweepContainers } from '../agent/environments/containers/containers.ts';
import {
  detectContainers,
  isInsideContainer,
  type ContainerHost,
} from '../agent/environments/containers/host.ts';
import { lockStep } from '../agent/environments/locks/lockStep.ts';
import { moduleStep } from '../agent/environments/modules/modules.ts';
import { EnvironmentStore, keyOf } from '../agent/environments/store.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { systemRandom } from '../lib/random.ts';
import { CONTAINERS, INSIDE_CONTAINER } from '../model/placement.ts';
import type { Settings } from '../model/settings.ts';

export interface EnvironmentOptions {
  settings: Settings;
  /** What starts images here; null: nothing. */
  containers: ContainerHost | null;
  clock: Clock;
  log: Log;
}

export interface EnvironmentSteps {
  /** Modules and lock files, before checkpoints are restored. */
  build: Step[];
  /** The last before the command: a container gets what all others prepared. */
  start: Step;
  /** The first after it: its container is gone before anything it left is kept. */
  remove: Step;
}

export function environmentSteps(options: EnvironmentOptions): EnvironmentSteps {
  const { settings, containers: host, clock, log } = options;
  const { dataDir, environments } = settings.agent;
  const { env } = process;
  const attempts = join(dataDir, 'attempts');
  const folder = join(dataDir, 'environments');
  const random = systemRandom;
  const store = new EnvironmentStore({ folder, attempts, ...environments, clock, random });
  const agent = keyOf([dataDir]).slice(0, 16);
  const own = { host, insideContainer: isInside(settings), store, agent, env, clock };
  sweepContainers(own, attempts).then(
    (uids) => uids.length > 0 && log.info({ uids }, 'containers left by an earlier agent are gone'),
    (error: unknown) => log.warn({ error }, 'containers of an earlier agent were not looked for'),
  );
  const build = [moduleStep({ env, clock }), lockStep({ store, clock })];
  return { build, ...containerSteps(own) };
}

export async function containersOf(
  { agent }: Settings,
  clock: Clock,
  log: Log,
): Promise<ContainerHost | null> {
  const { containerRuntime: wanted } = agent;
  const { host, problems } = await detectContainers(wanted, process.env, clock);
  // Where another one works, or none was asked for by name, that is nothing to worry about.
  const level = host === null && wanted !== 'auto' ? 'warn' : 'info';
  for (const problem of problems) log[level]({ problem }, 'a container runtime is not used');
  return host;
}

/** Jobs with an image go where `containers` is; the other says why it is not. */
export function containerAttributes(
  settings: Settings,
  host: ContainerHost | null,
): Record<string, string> {
  if (host) return { [CONTAINERS]: host.runtime };
  return isInside(settings) ? { [INSIDE_CONTAINER]: 'yes' } : {};
}

function isInside({ agent }: Settings): boolean {
  return agent.insideContainer === 'auto' ? isInsideContainer() : agent.insideContainer === 'yes';
}
