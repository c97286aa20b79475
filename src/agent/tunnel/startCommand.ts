/** Starts a command as a part of a running attempt: in its directory, environment and limits. */
import { statSync } from 'node:fs';
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { ExecProcess } from './execProcess.ts';
import { makeGate } from './fifos.ts';
import { startPiped } from './piped.ts';
import type { ExecContext } from './running.ts';
import { startInTerminal } from './terminal.ts';

interface CommandStart {
  command: string[];
  /** Added to the attempt's own. */
  env?: Record<string, string> | undefined;
  terminal?: { cols?: number | undefined; rows?: number | undefined } | undefined;
}

export interface StartedCommand {
  process: ExecProcess;
  /** After its end. */
  cleanUp: () => Promise<void>;
}

const DEFAULT_COLS = 80;
const DEFAULT_ROWS = 24;
const DEFAULT_TERM = 'xterm-256color';

export async function startCommand(
  start: CommandStart,
  context: ExecContext,
  clock: Clock,
): Promise<StartedCommand> {
  if (!statSync(context.cwd, { throwIfNoEntry: false })?.isDirectory()) {
    throw new DroverError('NOT_FOUND', `the attempt's directory ${context.cwd} is gone`);
  }
  const gate = context.joinCgroup && (await makeGate());
  const cleanUp = async (): Promise<void> => gate?.remove();
  try {
    const process = await spawnCommand(start, context, gate?.path, clock);
    context.joinCgroup?.(process.pid);
    gate?.open();
    return { process, cleanUp };
  } catch (error) {
    await cleanUp();
    throw error;
  }
}

async function spawnCommand(
  { command, terminal, ...start }: CommandStart,
  context: ExecContext,
  gate: string | undefined,
  clock: Clock,
): Promise<ExecProcess> {
  const env = { ...context.env, ...start.env };
  if (terminal !== undefined) env['TERM'] ??= DEFAULT_TERM;
  const lead = terminal === undefined ? context.enter?.piped : context.enter?.terminal;
  const words = lead ? [...lead, ...setInside(start.env), ...command] : command;
  const held = { command: words, cwd: context.cwd, env, ...(gate ? { gate } : {}) };
  if (terminal === undefined) return startPiped(held, clock);
  const { cols = DEFAULT_COLS, rows = DEFAULT_ROWS } = terminal;
  return startInTerminal({ ...held, cols, rows }, clock);
}

/** In a container the environment of what leads there is not the command's. */
function setInside(env: Record<string, string> = {}): string[] {
  const words = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return words.length > 0 ? ['env', ...words] : [];
}
