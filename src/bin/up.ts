/**
 * drover up: a server and a local agent as two processes, started again when one of them dies. Jobs
 * belong to neither: they go on while this one is stopped, for as long as their lease lasts.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { DroverError } from '../lib/errors.ts';
import type { Settings } from '../model/settings.ts';
import { readConnection } from './connection.ts';
import type { RoleArguments } from './roles.ts';

const EXECUTABLE = fileURLToPath(new URL('./drover.ts', import.meta.url));
const FIRST_RESTART_MS = 100;
const LONGEST_RESTART_MS = 10_000;
/** A child that lived this long had a good start: its next restart is quick again. */
const GOOD_LIFE_MS = 10_000;

interface Child {
  stop(): Promise<void>;
}

export async function runUp({ settings, flags }: RoleArguments): Promise<number> {
  const stopped = signalled();
  const env = childEnvironment(settings);
  const ready = Promise.withResolvers<string>();
  const server = keep('controller', ['controller', '--with-gateway'], env, {
    ready: (message) => ready.resolve(String(message['url'])),
    neverUp: (code) => ready.reject(code),
  });
  const children: Child[] = [server];
  try {
    const url = await Promise.race([ready.promise, stopped]);
    if (url === undefined) return 0;
    const connection = readConnection(settings.data.dir);
    if (!connection) throw new Error('the server did not write connection.json');
    if (!flags['no-agent']) {
      const agentEnv = { ...env, DROVER_JOIN_TOKEN: connection.joinToken };
      children.push(keep('agent', ['agent', '--join', url], agentEnv, {}));
    }
    greet(url, connection.token, settings);
    await stopped;
    await sayWhatGoesOn(url, connection.token, settings);
    return 0;
  } catch (code) {
    // The server's own words are on the terminal already.
    if (typeof code === 'number') return code;
    throw code;
  } finally {
    for (const child of children.toReversed()) await child.stop();
  }
}

/** Children read their settings as this process did; what came by flags travels by environment. */
function childEnvironment(settings: Settings): NodeJS.ProcessEnv {
  const { data, server, agent } = settings;
  return {
    ...process.env,
    DROVER_DATA: data.dir,
    DROVER_SERVER_HOST: server.host,
    DROVER_SERVER_PORT: String(server.port),
    DROVER_AGENT_RESOURCES: agent.resources,
    DROVER_AGENT_NAME: agent.name,
    DROVER_AGENT_ADDRESS: agent.address,
    DROVER_AGENT_NETWORK: agent.network,
    DROVER_AGENT_DATA_DIR: agent.dataDir,
  };
}

interface Watch {
  ready?: (message: Record<string, unknown>) => void;
  /** It ended before it was ever up: trying again would change nothing. */
  neverUp?: (code: number) => void;
}

function keep(name: string, args: string[], env: NodeJS.ProcessEnv, watch: Watch): Child {
  let child: ChildProcess;
  let stopping = false;
  let failures = 0;
  let everUp = false;
  let timer: NodeJS.Timeout | undefined;
  const start = (): void => {
    const startedAt = performance.now();
    // Its own group: Ctrl-C is for this process, which stops its children in order.
    child = fork(EXECUTABLE, args, { env, detached: true, execArgv: process.execArgv });
    child.on('message', (message: Record<string, unknown>) => {
      everUp = true;
      watch.ready?.(message);
    });
    child.on('exit', (code, signal) => {
      if (stopping) return;
      if (!everUp && watch.neverUp) {
        watch.neverUp(code ?? 1);
        return;
      }
      failures = performance.now() - startedAt > GOOD_LIFE_MS ? 0 : failures + 1;
      const delayMs = Math.min(LONGEST_RESTART_MS, FIRST_RESTART_MS * 2 ** failures);
      process.stderr.write(
        `drover: the ${name} ended (${signal ?? `code ${code}`}); starting it again\n`,
      );
      timer = setTimeout(start, failures === 0 ? 0 : delayMs);
    });
  };
  start();
  return {
    async stop() {
      stopping = true;
      clearTimeout(timer);
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    },
  };
}

function greet(url: string, token: string, settings: Settings): void {
  const data = settings.data.dir;
  process.stdout.write(`
Drover is up at ${url}
  admin token   ${token}
  data          ${data}

Try, in another terminal:
  ./drover run -- python3 -c 'print("hi")'
  ./drover submit -f examples/array.yaml
  ./drover workers

Ctrl-C stops it.
`);
}

async function sayWhatGoesOn(url: string, token: string, settings: Settings): Promise<void> {
  const running = await countRunning(url, token);
  if (running === 0) {
    process.stdout.write('\nStopping. Nothing is running.\n');
    return;
  }
  const { attemptMs, killMarginMs } = settings.leases;
  const until = new Date(Date.now() + attemptMs - killMarginMs);
  const minutes = ((attemptMs - killMarginMs) / 60_000).toFixed(1);
  process.stdout.write(
    `\nStopping. ${running} running task${running === 1 ? '' : 's'} ${running === 1 ? 'goes' : 'go'} on ` +
      `and wait${running === 1 ? 's' : ''} for a restart until ${until.toLocaleTimeString('en-GB')} ` +
      `(${minutes} minutes).\nA start before then adopts them; a later one runs them again.\n`,
  );
}

async function countRunning(url: string, token: string): Promise<number> {
  try {
    const response = await fetch(new URL('/v1/cluster', url), {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(2000),
    });
    const { data } = (await response.json()) as { data: { tasks: { running: number } } };
    return data.tasks.running;
  } catch (cause) {
    throw new DroverError('UNAVAILABLE', 'the server did not say what is running', { cause });
  }
}

function signalled(): Promise<undefined> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve(undefined));
    process.once('SIGTERM', () => resolve(undefined));
    process.once('SIGHUP', () => resolve(undefined));
  });
}
