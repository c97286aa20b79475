/** drover agent: this machine as a worker of a cluster. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { startAgent } from '../agent/agent.ts';
import { createAround } from '../agent/around.ts';
import { detectResources, type Detected } from '../agent/devices/detect.ts';
import { bootId, machineId } from '../agent/devices/machine.ts';
import { parseResources } from '../agent/devices/parse.ts';
import { identityFile } from '../agent/identity.ts';
import { joinReports } from '../agent/reports.ts';
import { createProcessRuntime } from '../agent/runtimes/process.ts';
import { spoolSource } from '../agent/outputs.ts';
import { createTunnelDialer } from '../agent/tunnel/dialer.ts';
import { tunnelKinds } from '../agent/tunnel/kinds.ts';
import { httpTransport } from '../agent/transport.ts';
import { systemClock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import { createLog, type Log } from '../lib/log.ts';
import { isLoopback } from '../lib/loopback.ts';
import { systemRandom } from '../lib/random.ts';
import type { Settings } from '../model/settings.ts';
import { AGENT_VERSION, PREFLIGHT, type JoinRequest } from '../protocol/agent.ts';
import { startHealth } from './agentHealth.ts';
import { aroundSteps } from './agentSteps.ts';
import { containerAttributes, containersOf } from './environmentSteps.ts';
import { tellFailure } from './failure.ts';
import { endWithMachine } from './machineEnd.ts';
import type { RoleArguments } from './role.ts';
import { startSpool } from './spool.ts';
import { trustAgentFiles } from './trust.ts';
import { shutdownOnSignals, tellReady, type Shutdown } from './shutdown.ts';

const clock = systemClock;
const random = systemRandom;

export async function runAgent({ settings, flags, positionals }: RoleArguments): Promise<number> {
  // Of a machine that was asked for, TERM is the notice of its end.
  const shutdown = shutdownOnSignals(settings.agent.instance ? ['SIGINT'] : undefined);
  const log = createLog('agent', settings.logs.level);
  const { dataDir, caFile, certFile, keyFile } = settings.agent;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const url = clusterUrl(dataDir, flags['join']);
  const { level } = settings.logs;
  const trust = trustAgentFiles(settings.agent, log);
  shutdown.add(async () => trust.close());
  warnOfClearText(url, log);
  const spool = startSpool({ url, dataDir, level, caFile, certFile, keyFile }, (name, error) => {
    log.error({ thread: name, err: error }, 'a part of the agent has failed: stopping');
    process.exit(1);
  });
  const [{ resources, problems }, containers] = await Promise.all([
    resourcesOf(settings, log),
    containersOf(settings, clock, log),
  ]);
  const { health, report, heardDate } = startHealth({
    ...{ settings: settings.agent, resources, problems },
    ...{ clock, log },
  });
  shutdown.add(async () => health.close());
  const transport = httpTransport(url, heardDate);
  shutdown.add(() => transport.close());
  const identity = identityFile(join(dataDir, 'worker.json'));
  const { steps, checkpoints, cacheReport } = aroundSteps({
    ...{ settings, url, identity, transport, resources, containers, health },
    ...{ clock, log },
    lookForMetrics(uid) {
      if (outputs.lookForMetrics(uid)) spool.changed();
    },
  });
  const runtime = createProcessRuntime({
    ...{ dataDir, clock, log, random, favourAgent: true },
    around: createAround(steps),
    machineHasGpus: resources.devices.some((device) => device.kind === 'gpu'),
    // Asked from within this call for attempts of an earlier agent: by then the spool exists.
    beforeForget: (uid) =>
      Promise.resolve().then(() => outputs.keepUntil(uid, (key) => spool.whenDrained(key))),
  });
  const outputs = spoolSource(runtime);
  spool.follow(outputs);
  shutdown.add(() => spool.close());
  const tunnels = createTunnelDialer({
    kinds: tunnelKinds({ execContext: (uid) => runtime.execContext(uid), clock, log }),
    homeUrl: settings.agent.dialHome ? url : undefined,
    ...{ clock, random, log },
  });
  shutdown.add(() => tunnels.close());
  const machineEnd = endWithMachine(settings.agent, {
    ...{ transport, runtime, clock, log, shutdown },
    lastContactBootMs: () => agent.status().lastContactBootMs,
    unsent: () => outputs.list().length,
  });
  const attributes = { limits: runtime.limits, ...containerAttributes(settings, containers) };
  const agent = startAgent({
    transport: machineEnd.transport,
    ...{ runtime, clock, random, log },
    identityFile: identity,
    registration: registration(settings, resources, attributes, flags),
    joinToken: joinToken(positionals),
    onChange: () => {
      spool.changed();
      for (const { observation } of runtime.list()) {
        if (observation.state === 'ENDED') tunnels.endAttempt(observation.uid);
      }
    },
    report: joinReports(cacheReport, report),
    onTunnel: (order) => tunnels.dial(order),
    onCheckpoint: (uid) => checkpoints.ask(uid),
    onJoined: (worker) => {
      rememberUrl(dataDir, url);
      log.info({ worker, url }, 'this machine is a worker');
      tellReady({ worker });
    },
    onRefused: (refusal) => void refused(refusal, settings, shutdown),
  });
  shutdown.add(() => agent.close());
  return shutdown.ended;
}

async function refused(
  refusal: DroverError,
  { agent }: Settings,
  shutdown: Shutdown,
): Promise<void> {
  // One that ends itself tries until then: nobody else would end the machine.
  if (agent.selfDestructAfterMs > 0) return;
  await tellFailure('agent', refusal);
  shutdown.end(1);
}

function registration(
  settings: Settings,
  resources: JoinRequest['resources'],
  found: Record<string, string>,
  flags: RoleArguments['flags'],
): JoinRequest {
  const { agent } = settings;
  return {
    name: agent.name || hostname(),
    machine: agent.machine || machineId(agent.dataDir),
    bootId: bootId(),
    address: addressOf(settings),
    // Without a word on who reaches whom, only tasks on one machine surely reach each other.
    network: agent.network || `host:${machineId('')}`,
    agentVersion: AGENT_VERSION,
    capabilities: ['process', 'exec', PREFLIGHT],
    attributes: { ...agent.attributes, ...found },
    resources,
    terms: termsOf(agent.accepts, flags),
    host: agent.host || hostname(),
    ...(agent.instance && { instance: agent.instance }),
  };
}

/** Flags are the stronger; each tenant is named by one of its own. */
function termsOf(
  { tenants, interruptibleOnly }: Settings['agent']['accepts'],
  flags: RoleArguments['flags'],
): JoinRequest['terms'] {
  const named = flags['only-tenant'];
  return {
    tenants: Array.isArray(named) ? named : tenants,
    interruptibleOnly: flags['only-interruptible'] === true || interruptibleOnly,
  };
}

async function resourcesOf(settings: Settings, log: Log): Promise<Detected> {
  const text = settings.agent.resources;
  const detected = await detectResources({
    declared: text ? parseResources(text) : {},
  });
  for (const problem of detected.problems)
    log.warn({ problem }, 'part of this machine could not be read');
  return detected;
}

/** Where others of the same network reach this machine's tasks. */
function addressOf({ agent }: Settings): string {
  if (agent.address) return agent.address;
  if (!agent.network) return '127.0.0.1';
  const outward = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find((one) => !one.internal && one.family === 'IPv4');
  return outward?.address ?? hostname();
}

/** Given now, or remembered from the first join. */
function clusterUrl(dataDir: string, given: RoleArguments['flags'][string]): string {
  const named = given ?? process.env['DROVER_URL'];
  if (typeof named === 'string' && named !== '') {
    if (URL.canParse(named) && /^https?:$/.test(new URL(named).protocol)) return named;
    throw new DroverError('INVALID_ARGUMENT', `"${named}" is not the URL of a cluster`, {
      hint: 'drover agent --join http://HOST:7070 TOKEN',
    });
  }
  try {
    return readFileSync(join(dataDir, 'cluster-url'), 'utf8').trim();
  } catch (cause) {
    throw new DroverError('INVALID_ARGUMENT', 'this machine has not joined a cluster yet', {
      hint: 'drover agent --join URL TOKEN (a token comes from: drover tokens create --kind join)',
      cause,
    });
  }
}

function warnOfClearText(url: string, log: Log): void {
  const { protocol, hostname } = new URL(url);
  if (protocol === 'https:' || isLoopback(hostname)) return;
  log.warn({ url, insecure: true }, 'the cluster has no TLS: tokens cross the network readable');
}

function rememberUrl(dataDir: string, url: string): void {
  writeFileSync(join(dataDir, 'cluster-url'), `${url}\n`);
}

function joinToken(positionals: string[]): string | null {
  const [given] = positionals;
  // Arguments can be read by every user of this machine; the title takes their place.
  if (given !== undefined) process.title = 'drover agent';
  return given ?? process.env['DROVER_JOIN_TOKEN'] ?? null;
}
