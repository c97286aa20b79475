/** drover exec: a command inside a running task; the bytes go through src/cli/exec.ts. */
import { execUrl } from '../protocol/tunnel/execClient.ts';
import { UsageError } from './args.ts';
import { defineCommand } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { findTask } from './taskOfId.ts';

export const execCommand = defineCommand({
  name: 'exec',
  summary: 'Run a command inside a running task',
  usage: ['exec [-t | -T] ID [--task N] [-- COMMAND…]'],
  options: {
    task: { kind: 'text', value: 'N', help: 'the task of an array or a gang (or its id as ID)' },
    tty: { kind: 'flag', short: 't', help: 'with a terminal (default when this is one)' },
    'no-tty': { kind: 'flag', short: 'T', help: 'without a terminal: bytes stay as they are' },
  },
  details: 'Without a command it opens a shell. Exits with the code of the command.',
  failureCode: EXIT.drover,
  async run({ options, positionals, rest }, context) {
    const [written, extra] = positionals;
    if (written === undefined) throw new UsageError('ID is missing', 'drover exec ID -- sh');
    if (extra !== undefined) {
      const words = positionals.slice(1).join(' ');
      throw new UsageError('the command goes after --', `drover exec ${written} -- ${words}`);
    }
    if (options.tty && options['no-tty']) throw new UsageError('-t and -T exclude each other');
    if (context.json) throw new UsageError('exec has no JSON form', 'leave out --json');
    const { io } = context;
    const terminal = io.stdin.isTTY ? io.stdout.isTTY : false;
    const { url, token } = context.connection();
    const task = await findTask(
      context.client(),
      written,
      options.task,
      'exec ID --task N -- COMMAND',
    );
    const command = rest?.length ? rest : ['/bin/sh'];
    const tty = options.tty || (terminal && !options['no-tty']);
    // Loaded when used: no other command needs the tunnel.
    const { runExec } = await import('./exec.ts');
    return runExec({ url: execUrl(url, task), token: token ?? '', command, tty });
  },
});
