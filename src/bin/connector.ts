/** drover connector: on a login node, the way out for agents and who runs a site's commands. */
import { readFileSync } from 'node:fs';
import { startConnector } from '../connector/connector.ts';
import { startRelay } from '../connector/relay.ts';
import { systemClock as clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import { createLog, type Log } from '../lib/log.ts';
import { isLoopback } from '../lib/loopback.ts';
import { systemRandom as random } from '../lib/random.ts';
import { AGENT_PATHS } from '../protocol/agent.ts';
import type { ExchangeReply, ExchangeRequest } from '../protocol/connector.ts';
import { send } from '../protocol/http.ts';
import { createLocalShell } from '../providers/remote/localShell.ts';
import { tellFailure } from './failure.ts';
import type { RoleArguments } from './role.ts';
import { shutdownOnSignals, tellReady } from './shutdown.ts';
import { trustAgentFiles } from './trust.ts';

const LISTEN = '127.0.0.1:7072';
/** Longer than the controller holds a call, so that only a dead connection runs into it. */
const CALL_TIMEOUT_MS = 80_000;

export async function runConnector(args: RoleArguments): Promise<number> {
  const { settings, flags, positionals } = args;
  const site = textOf(flags['site']);
  if (site === '') throw wrong('the site is not named', '--site NAME, as in fleet.sites');
  const target = targetOf(textOf(flags['join']) || (process.env['DROVER_URL'] ?? ''));
  const token = tokenOf(positionals, textOf(flags['token-file']));
  const { host, port } = placeOf(textOf(flags['listen']) || LISTEN);
  const shutdown = shutdownOnSignals();
  const log = createLog('connector', settings.logs.level);
  const trust = trustAgentFiles(settings.agent, log);
  shutdown.add(async () => trust.close());
  warnOfClearText(target, host, log);
  const relay = await startRelay({ target, host, port, log }).catch((cause: unknown) => {
    const hint = 'give another place by --listen HOST:PORT';
    throw new DroverError('INVALID_ARGUMENT', `cannot listen: ${String(cause)}`, { hint, cause });
  });
  shutdown.add(() => relay.close());
  const connector = startConnector({
    ...{ site, clock, random, log },
    exchange: (request, signal) => exchange({ url: target.origin, token }, request, signal),
    shell: createLocalShell({ clock, random }),
    onAccepted() {
      log.info({ site, relay: relay.url, gateway: target.origin }, 'the connector is up');
      tellReady({ url: relay.url });
    },
    onRefused(refusal) {
      void tellFailure('connector', refusal).then(() => shutdown.end(1));
    },
  });
  shutdown.add(() => connector.close());
  return shutdown.ended;
}

async function exchange(
  options: { url: string; token: string },
  body: ExchangeRequest,
  signal: AbortSignal,
): Promise<ExchangeReply> {
  const late = AbortSignal.any([signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]);
  const response = await send(options, AGENT_PATHS.connector, {
    ...{ method: 'POST', body, signal: late },
  });
  return (await response.json()) as ExchangeReply;
}

function textOf(value: RoleArguments['flags'][string]): string {
  return typeof value === 'string' ? value : '';
}

function wrong(message: string, hint: string): DroverError {
  return new DroverError('INVALID_ARGUMENT', message, { hint });
}

function targetOf(url: string): URL {
  const hint = 'drover connector --site NAME --join https://HOST:7070';
  if (url === '') throw wrong('the gateway is not named', hint);
  if (!URL.canParse(url)) throw wrong(`"${url}" is not the URL of a cluster`, hint);
  const parsed = new URL(url);
  if (!/^https?:$/.test(parsed.protocol)) throw wrong(`"${url}" is not an HTTP URL`, hint);
  return parsed;
}

function placeOf(text: string): { host: string; port: number } {
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(found?.[3]);
  if (!found || port > 65_535) throw wrong(`"${text}" is no place to listen`, '--listen HOST:PORT');
  return { host: found[1] ?? found[2] ?? '', port };
}

/** Arguments can be read by every user of a login node: there are other ways, and a title. */
function tokenOf([given]: string[], file: string): string {
  if (given !== undefined) process.title = 'drover connector';
  const token = given ?? (file ? readToken(file) : (process.env['DROVER_JOIN_TOKEN'] ?? ''));
  if (token !== '') return token;
  const hint = 'drover tokens create --kind join --pool POOL, given as DROVER_JOIN_TOKEN';
  throw wrong('there is no join token', hint);
}

function readToken(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (cause) {
    throw wrong(`the token file cannot be read: ${String(cause)}`, '--token-file FILE');
  }
}

function warnOfClearText(target: URL, host: string, log: Log): void {
  const clear = { insecure: true };
  if (target.protocol === 'http:' && !isLoopback(target.hostname)) {
    const url = target.origin;
    log.warn({ ...clear, url }, 'the cluster has no TLS: tokens cross the network readable');
  }
  if (isLoopback(host)) return;
  log.warn(
    { ...clear, listen: host },
    'agents speak clear text to this connector: their tokens cross the network inside the cluster',
  );
}
