/**
 * drover up: a server and a local agent as two processes, started again when one of them dies.
 * Jobs belong to neither: they go on while this one is stopped, for as long as their lease lasts.
 */
import { parseResources } from '../agent/devices/parse.ts';
import type { Settings } from '../model/settings.ts';
import { useClientTlsFiles } from '../protocol/clientTls.ts';
import { openChildLog, type ChildLog } from './childLog.ts';
import { keepChild, type Child } from './children.ts';
import { prepareDataFolder, readConnection } from './connection.ts';
import { farewell, greeting } from './greeting.ts';
import type { RoleArguments } from './role.ts';

const ASK_LIMIT_MS = 2000;

export async function runUp({ settings, flags }: RoleArguments): Promise<number> {
  const stopped = signalled();
  // Here and not only in the agent, which would end and be started again without end.
  if (settings.agent.resources) parseResources(settings.agent.resources);
  prepareDataFolder(settings.data.dir);
  useClientTlsFiles(settings.agent);
  const log = openChildLog(settings.data.dir, (text) => process.stderr.write(`${text}\n`));
  const children: Child[] = [];
  const keep = keeper(children, log);
  const env = childEnvironment(settings);
  const up = Promise.withResolvers<string>();
  keep('server', ['controller', '--with-gateway'], env, {
    ready(message) {
      const url = String(message['url']);
      // Where any free port was asked for, a restart must come back under the one agents know.
      env['DROVER_SERVER_PORT'] = new URL(url).port;
      up.resolve(url);
    },
    neverUp: (code) => up.reject(code),
  });
  try {
    const url = await Promise.race([up.promise, stopped]);
    if (url === undefined) return 0;
    const connection = readConnection(settings.data.dir);
    if (!connection) throw new Error('the server did not write connection.json');
    if (!flags['no-agent']) {
      // By environment: arguments can be read by every user of the machine.
      const agentEnv = { ...env, DROVER_JOIN_TOKEN: connection.joinToken };
      keep('agent', ['agent', '--join', url], agentEnv, {});
    }
    process.stdout.write(greeting(connection, settings, log.path));
    await stopped;
    process.stdout.write(farewell(await countRunning(connection), settings, new Date()));
    return 0;
  } catch (code) {
    if (typeof code !== 'number') throw code;
    process.stderr.write(`drover: the server did not start; its log: ${log.path}\n`);
    return code;
  } finally {
    for (const child of children.toReversed()) await child.stop();
    log.close();
  }
}

interface Watch {
  ready?: (message: Record<string, unknown>) => void;
  neverUp?: (code: number) => void;
}

function keeper(children: Child[], log: ChildLog) {
  return (name: string, args: string[], env: NodeJS.ProcessEnv, watch: Watch): void => {
    const restarts = (how: string, delayMs: number): void => {
      const when = delayMs === 0 ? 'at once' : `in ${(delayMs / 1000).toFixed(1)} s`;
      const text = `the ${name} ended (${how}) and starts again ${when}; its log: ${log.path}`;
      process.stderr.write(`drover: ${text}\n`);
    };
    children.push(keepChild({ args, env, log, restarts, ...watch }));
  };
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
    DROVER_AGENT_CA_FILE: agent.caFile,
  };
}

/** Null when the server cannot be asked: it may be starting again at this very moment. */
async function countRunning({ url, token }: { url: string; token: string }) {
  try {
    const response = await fetch(new URL('/v1/cluster', url), {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(ASK_LIMIT_MS),
    });
    const { data } = (await response.json()) as { data: { tasks: { running: number } } };
    return data.tasks.running;
  } catch {
    return null;
  }
}

function signalled(): Promise<undefined> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve(undefined));
    process.once('SIGTERM', () => resolve(undefined));
    process.once('SIGHUP', () => resolve(undefined));
  });
}
