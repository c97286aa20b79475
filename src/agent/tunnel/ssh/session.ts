/** One SSH session: a command, a shell or SFTP, with or without a terminal. */
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import type { PseudoTtyInfo, ServerChannel, Session } from 'ssh2';
import { sleep, type Clock } from '../../../lib/clock.ts';
import type { Log } from '../../../lib/log.ts';
import { CHANNELS } from '../../../protocol/tunnel/exec.ts';
import { readUntilClosed } from '../exec.ts';
import type { ExecExitStatus, ExecProcess } from '../execProcess.ts';
import type { ExecContext } from '../running.ts';
import { signalForeground } from '../session.ts';
import { startCommand } from '../startCommand.ts';
import { serveSftp } from './sftp.ts';

interface SessionOptions {
  context: ExecContext;
  clock: Clock;
  log: Log;
}

/** After the exit, a child may hold the output open: it is read on until silent for this long. */
const DRAIN_MS = 300;
const DRAIN_STEP_MS = 20;
/** RFC 4254 names signals without SIG; others cannot be sent. */
const SIGNALS = ['ABRT', 'ALRM', 'HUP', 'INT', 'KILL', 'QUIT', 'TERM', 'USR1', 'USR2'] as const;

export function serveSession(session: Session, options: SessionOptions): void {
  const { context, log } = options;
  const env: Record<string, string> = {};
  let terminal: PseudoTtyInfo | undefined;
  let running: ExecProcess | undefined;
  const run = (channel: ServerChannel, command: string[]): void => {
    const start = { command, env, terminal };
    const tellProcess = (process: ExecProcess): void => void (running = process);
    runCommand(channel, start, tellProcess, options).catch((error: unknown) => {
      log.warn({ error: String(error) }, 'an ssh session failed');
      channel.stderr.write(`drover: ${error instanceof Error ? error.message : String(error)}\n`);
      channel.exit(255);
      channel.close();
    });
  };
  // Where the client wants no answer there is nothing to call.
  session.on('pty', (accept, _reject, info) => {
    terminal = info;
    env['TERM'] = info.term;
    accept?.();
  });
  session.on('env', (accept, _reject, { key, val }) => {
    env[key] = val;
    accept?.();
  });
  session.on('window-change', (accept, _reject, { cols, rows }) => {
    running?.resize(cols, rows);
    accept?.();
  });
  session.on('signal', (accept, _reject, { name }) => {
    const signal = SIGNALS.find((known) => known === name);
    if (running && signal) signalForeground(running.pid, `SIG${signal}`);
    accept?.();
  });
  session.on('exec', (accept, _reject, { command }) =>
    run(accept(), [shellOf(context), '-c', command]),
  );
  session.on('shell', (accept) => run(accept(), [shellOf(context)]));
  session.on('sftp', (accept) => serveSftp(accept(), context.cwd, log));
}

function shellOf({ env, enter }: ExecContext): string {
  // In a container only this one is to be expected.
  if (enter) return '/bin/sh';
  return [env['SHELL'], '/bin/bash'].find((path) => path && existsSync(path)) ?? '/bin/sh';
}

async function runCommand(
  channel: ServerChannel,
  start: { command: string[]; env: Record<string, string>; terminal: PseudoTtyInfo | undefined },
  tellProcess: (process: ExecProcess) => void,
  { context, clock, log }: SessionOptions,
): Promise<void> {
  // Its end is seen as the end of reading and as `close`.
  channel.on('error', () => {});
  const closed = new Promise<void>((resolve) => channel.once('close', () => resolve()));
  const { process, cleanUp } = await startCommand(start, context, clock);
  tellProcess(process);
  try {
    void feedInput(channel, process, log);
    const status = await Promise.race([sendOutput(channel, process, clock), closed]);
    if (status) sendExit(channel, status);
    channel.close();
  } finally {
    // A terminal's processes get a hangup by this, others an end of their input.
    process.release();
    await process.exited.catch(() => {});
    await cleanUp();
  }
}

async function feedInput(channel: ServerChannel, process: ExecProcess, log: Log): Promise<void> {
  try {
    for await (const bytes of readUntilClosed(channel)) await process.write(bytes);
    await process.endInput();
  } catch (error) {
    log.debug({ error: String(error) }, 'the input of an ssh session broke off');
  }
}

/** Resolves with the exit status when all output was taken. */
async function sendOutput(
  channel: ServerChannel,
  process: ExecProcess,
  clock: Clock,
): Promise<ExecExitStatus> {
  const progress = { silentMs: 0, blocked: 0, ended: false };
  const pumps = Promise.all(
    process.outputs.map(async ({ channel: kind, readable }) => {
      const output = kind === CHANNELS.stderr ? channel.stderr : channel;
      for await (const bytes of readUntilClosed(readable)) {
        progress.silentMs = 0;
        progress.blocked++;
        if (!output.write(bytes)) await once(output, 'drain');
        progress.blocked--;
      }
    }),
  ).finally(() => (progress.ended = true));
  const status = await process.exited;
  while (!progress.ended && progress.silentMs < DRAIN_MS) {
    await sleep(clock, DRAIN_STEP_MS);
    if (progress.blocked === 0) progress.silentMs += DRAIN_STEP_MS;
  }
  process.release();
  await pumps;
  return status;
}

function sendExit(channel: ServerChannel, { code, signal }: ExecExitStatus): void {
  if (code !== null) channel.exit(code);
  else channel.exit((signal ?? 'SIGKILL').slice('SIG'.length), false, '');
}
