/**
 * Starts the processes of no-op agents; the one place to change when they should run other agent
 * code.
 */
import type { DroverServer } from '../servers/drover.ts';
import { startScript, type Child } from '../support/processes.ts';
import type { Behaviour } from './noopRuntime.ts';

export interface NoopAgents {
  /** Lets them join and work. */
  go(): void;
  close(): Promise<void>;
}

export interface NoopOptions {
  agents: number;
  /** Attempts each may have at once. */
  slots: number;
  behaviour: Behaviour;
}

/** Each agent in its own process, as on so many machines. Resolves when all wait for `go`. */
export async function startNoopAgents(
  server: DroverServer,
  { agents, slots, behaviour }: NoopOptions,
): Promise<NoopAgents> {
  const token = await server.joinToken();
  const children: Child[] = [];
  for (let n = 0; n < agents; n++) {
    const args = [server.url, token, `noop-${n}`, String(slots), behaviour];
    children.push(startScript(new URL('noopProcess.ts', import.meta.url), args));
  }
  await Promise.all(children.map((child) => child.line('prepared')));
  return {
    go() {
      for (const child of children) child.say('go');
    },
    async close() {
      await Promise.all(children.map((child) => child.stop('SIGKILL')));
    },
  };
}
