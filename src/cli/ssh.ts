/** drover ssh: the system's OpenSSH client, whose connection goes through the gateway. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { UsageError } from './args.ts';
import { defineCommand, type CommandContext } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { insideTask } from './insideTask.ts';
import { hostName, prepareSshFiles, sshConfig, sshOptions, taskOfHost } from './sshFiles.ts';
import { findTask } from './taskOfId.ts';

export const sshCommand = defineCommand({
  name: 'ssh',
  summary: 'Open a real SSH session in a running task; rsync, scp and editors too',
  usage: ['ssh ID [--task N] [-- SSH OPTIONS | COMMAND…]', 'ssh --config'],
  options: {
    task: { kind: 'text', value: 'N', help: 'the task of an array or a gang (or its id as ID)' },
    config: { kind: 'flag', help: 'print lines for ~/.ssh/config: then `ssh drover-ID` works' },
    proxy: { kind: 'flag', help: 'for ProxyCommand: bytes between stdin, stdout and the task' },
  },
  details:
    'examples:\n' +
    '  drover ssh j01k2m3\n' +
    '  drover ssh j01k2m3 -- nvidia-smi\n' +
    '  drover ssh j01k2m3 -- -L 8080:localhost:80 -N\n' +
    '  drover ssh --config >> ~/.ssh/config\n' +
    '  rsync -a drover-j01k2m3:out/ out/',
  failureCode: EXIT.drover,
  async run({ options, positionals, rest }, context) {
    const [written, extra] = positionals;
    if (context.json) throw new UsageError('ssh has no JSON form', 'leave out --json');
    if (options.config) {
      if (written !== undefined)
        throw new UsageError('--config is for all tasks: leave out the ID');
      await context.print(sshConfig(context.connection(), context.io.env).trimEnd());
      return EXIT.ok;
    }
    if (written === undefined) throw new UsageError('ID is missing', 'drover ssh ID');
    if (extra !== undefined) {
      const words = positionals.slice(1).join(' ');
      throw new UsageError('the command goes after --', `drover ssh ${written} -- ${words}`);
    }
    const id = taskOfHost(written);
    if (options.proxy) return proxy(context, id, options.task);
    const task = await findTask(context.client(), id, options.task, 'ssh ID --task N');
    return runSsh(context, task, rest ?? []);
  },
});

async function runSsh(context: CommandContext, task: string, rest: string[]): Promise<number> {
  const { io } = context;
  await prepareSshFiles(io.env);
  const options = Object.entries(sshOptions(context.connection(), io.env)).flatMap(
    ([name, value]) => ['-o', `${name}=${value}`],
  );
  const child = spawn('ssh', [...options, hostName(task), ...rest], {
    stdio: 'inherit',
    env: io.env,
  });
  // Ctrl-C is for the client, which has the terminal; it ends, and then so do we.
  const release = io.onInterrupt(() => {});
  const ended = Promise.withResolvers<number>();
  child.on('error', (error: NodeJS.ErrnoException) =>
    ended.reject(
      error.code === 'ENOENT'
        ? new UsageError('there is no ssh on this machine', 'install openssh-client')
        : error,
    ),
  );
  child.on('exit', (code, signal) => {
    const numbers: Record<string, number> = constants.signals;
    ended.resolve(code ?? 128 + (numbers[signal ?? ''] ?? 0));
  });
  return ended.promise.finally(release);
}

async function proxy(
  context: CommandContext,
  written: string,
  flag: string | undefined,
): Promise<number> {
  const { io } = context;
  const files = await prepareSshFiles(io.env);
  const task = await findTask(context.client(), written, flag, 'ssh ID --task N');
  const inside = insideTask(context.connection(), task);
  // Loaded when used: no other command needs it.
  const { pumpSsh } = await import('./sshProxy.ts');
  try {
    await pumpSsh({ inside, files, host: hostName(written), stdin: io.stdin });
    return EXIT.ok;
  } finally {
    inside.close('the ssh client left');
  }
}
