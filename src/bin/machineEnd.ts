/**
 * What ends an agent with its machine: signals by which Slurm and others give notice, silence, and
 * a controller that does not want it. Where the settings say how, it takes the machine with it.
 */
import { spawn } from 'node:child_process';
import { watchMachineEnd, type EndKind, type MachineEnd } from '../agent/machineEnd.ts';
import type { MachineEndOptions } from '../agent/machineEnd.ts';
import { sleep, type Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Settings } from '../model/settings.ts';
import type { Shutdown } from './shutdown.ts';

type Options = Omit<MachineEndOptions, 'selfDestructAfterMs' | 'isLent' | 'onOver'> & {
  shutdown: Shutdown;
};

/** How the process ends; docs/agents.md tells them apart. */
const EXIT_CODES: Record<EndKind, number> = { left: 0, silent: 120, unwanted: 121 };
/** The machine costs until it works; then somebody must look. */
const COMMAND_TRIES = 3;
const COMMAND_LIMIT_MS = 60_000;
const COMMAND_PAUSE_MS = 10_000;

export function endWithMachine(agent: Settings['agent'], options: Options): MachineEnd {
  const { shutdown, clock, log, ...watched } = options;
  const { selfDestructAfterMs, selfDestructCommand: command } = agent;
  const end = async (kind: EndKind): Promise<void> => {
    if (kind !== 'left' && command !== '') await endMachine(command, clock, log);
    shutdown.end(EXIT_CODES[kind]);
  };
  const machineEnd = watchMachineEnd({
    ...watched,
    clock,
    log,
    selfDestructAfterMs,
    isLent: agent.instance !== '',
    onOver: (kind) => void end(kind),
  });
  shutdown.add(async () => machineEnd.close());
  const notice = (signal: NodeJS.Signals): void => machineEnd.leave(`the machine ends: ${signal}`);
  process.on('SIGUSR1', notice);
  if (agent.instance !== '') {
    process.once('SIGTERM', (signal) => {
      notice(signal);
      process.once('SIGTERM', () => shutdown.end(0));
    });
  }
  return machineEnd;
}

/** With the agent's environment, of which no task sees anything. */
async function endMachine(command: string, clock: Clock, log: Log): Promise<void> {
  for (let tries = 1; tries <= COMMAND_TRIES; tries++) {
    const problem = await run(command);
    if (problem === null) return;
    log.error({ command, problem, tries }, 'agent.selfDestructCommand failed');
    if (tries < COMMAND_TRIES) await sleep(clock, COMMAND_PAUSE_MS);
  }
}

/** Null where it did what it should. */
function run(command: string): Promise<string | null> {
  return new Promise((resolve) => {
    const child = spawn('/bin/sh', ['-c', command], {
      stdio: ['ignore', 2, 2],
      timeout: COMMAND_LIMIT_MS,
    });
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) =>
      resolve(code === 0 ? null : `ended with ${signal ?? code}`),
    );
  });
}
