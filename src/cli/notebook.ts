/** drover notebook: Jupyter as a job, opened in the browser through the gateway. */
import { randomUUID } from 'node:crypto';
import { spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { DroverError } from '../lib/errors.ts';
import type { DroverClient } from '../protocol/client.ts';
import { UsageError } from './args.ts';
import { bringParts } from './bundle/bringParts.ts';
import { defineCommand, type CommandContext } from './command.ts';
import { parseDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { insideTask } from './insideTask.ts';
import { hasEnded } from './jobEnd.ts';
import { isNotebook, jupyterCommand, notebookEndpoint, socketName } from './jupyter.ts';
import { jobOptions, specFromFlags } from './run.ts';
import { showWaitStatus } from './waitStatus.ts';

const DEFAULT_IDLE_STOP = '1h';
const LOOK_MS = 400;

export const notebookCommand = defineCommand({
  name: 'notebook',
  summary: 'Run Jupyter as a job and open it in the browser',
  usage: ['notebook [options of run] [-- JUPYTER OPTIONS]', 'notebook ID'],
  options: {
    ...jobOptions,
    'idle-stop': {
      kind: 'text',
      value: 'D',
      help: `end it when nobody used it for so long (default ${DEFAULT_IDLE_STOP}; 0: never)`,
    },
    'no-open': { kind: 'flag', help: 'print the link and start no browser' },
  },
  details:
    'Jupyter comes from the environment of the job, or else from PyPI. The link works once; ID\n' +
    'of a notebook that runs gives a new one. The worker opens no port.\n\n' +
    'examples:\n' +
    '  drover notebook --gpus 1 --time 8h\n' +
    '  drover notebook j01k2m3',
  async run({ options, positionals, rest }, context) {
    const [written, extra] = positionals;
    if (extra !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(extra)}`);
    const client = context.client();
    const id = written
      ? await requireNotebook(client, written)
      : await submit(context, client, options, rest ?? []);
    if (!(await served(context, client, id))) return EXIT.failed;
    const url = client.url + (await client.proxyLogin(notebookEndpoint(id), ''));
    if (context.json) await context.printJson({ job: id, url });
    else await tell(context, id, url);
    if (!context.json && !options['no-open'] && context.io.stdout.isTTY) openBrowser(url);
    return EXIT.ok;
  },
});

async function requireNotebook(client: DroverClient, id: string): Promise<string> {
  const { spec } = await client.getJob(id);
  if (isNotebook(spec?.command ?? [])) return id;
  throw new UsageError(`job ${id} is no notebook`, 'reach its ports with: drover forward ID PORT');
}

async function submit(
  context: CommandContext,
  client: DroverClient,
  options: Parameters<typeof specFromFlags>[0] & { 'idle-stop': string | undefined },
  jupyterOptions: string[],
): Promise<string> {
  if (options.array !== undefined || options.gang !== undefined) {
    throw new UsageError('a notebook is one task', 'leave out --array and --gang');
  }
  const written = options['idle-stop'] ?? DEFAULT_IDLE_STOP;
  const idleMs = written === '0' ? 0 : parseDuration(written, '--idle-stop');
  const spec = specFromFlags(options, jupyterCommand(idleMs, jupyterOptions), context.io);
  spec.name ??= 'notebook';
  spec.priority ??= 'interactive';
  const [brought] = await bringParts(context, [spec], options['bundle-limit']);
  const { id } = await client.submitJob(brought!, randomUUID());
  if (!context.json) await context.notice(`job ${id}`);
  return id;
}

/** Waits until it answers; false when the job ended before, which is then explained. */
async function served(context: CommandContext, client: DroverClient, id: string): Promise<boolean> {
  const inside = insideTask(context.connection(), `${id}.0`);
  const status = showWaitStatus(context.io, client, id);
  try {
    for (;;) {
      const job = await client.getJob(id);
      if (hasEnded(job)) {
        await status.clear();
        await context.notice(`job ${id} ${job.state}: ${job.reason || 'see its log'}`);
        await context.notice(`its log: drover logs ${id}`);
        return false;
      }
      if (job.state === 'RUNNING' && (await answers(inside, id))) return true;
      await delay(LOOK_MS);
    }
  } finally {
    await status.clear();
    inside.close('the notebook answers');
  }
}

/** False while it starts; what will not pass by waiting is thrown. */
async function answers(inside: ReturnType<typeof insideTask>, id: string): Promise<boolean> {
  try {
    const connection = await inside.connect({ kind: 'unix', socket: socketName(id) });
    connection.write('GET / HTTP/1.0\r\n\r\n');
    for await (const bytes of connection) return (bytes as Buffer).length > 0;
    return false;
  } catch (error) {
    const passing = ['UNAVAILABLE', 'CONFLICT', 'NOT_FOUND'];
    if (error instanceof DroverError && passing.includes(error.code)) return false;
    throw error;
  }
}

async function tell(context: CommandContext, id: string, url: string): Promise<void> {
  await context.print(url);
  await context.notice(
    `the link works once, for two minutes\n  another: drover notebook ${id}\n` +
      `  end it:  drover cancel ${id}`,
  );
}

/** Whether there is one is not known; the link is on the screen in any case. */
function openBrowser(url: string): void {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const child = spawn(program, [url], { detached: true, stdio: 'ignore' });
  child.on('error', () => {});
  child.unref();
}
