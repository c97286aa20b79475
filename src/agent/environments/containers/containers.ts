/**
 * Commands in containers. The image is fetched before; the command is then started by the runtime
 * of this machine, with the attempt's own folders at the same paths inside as outside.
 */
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  existsSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../lib/clock.ts';
import { METRICS_FILE } from '../../../model/metric.ts';
import type { AttemptOrder } from '../../../protocol/agent.ts';
import type { Step } from '../../around.ts';
import { Unprepared, type Kept, type Preparation } from '../../runtimes/around.ts';
import { RESULT_FOLDER, INHERITED_NAMES } from '../../runtimes/task.ts';
import type { EnvironmentStore } from '../store.ts';
import { runTool } from '../tool.ts';
import { apptainerLaunch } from './apptainer.ts';
import { quote, type Container, type Launch, type Mount } from './container.ts';
import { enrootLaunch } from './enroot.ts';
import { clientEnvironment, type ContainerHost } from './host.ts';
import { provideImage } from './images.ts';
import { AGENT_LABEL, ociLaunch, removeWords } from './oci.ts';
import { parseLogin } from './registry.ts';

/** Run by the watchdog, for when no agent lives; see its script. */
const REMOVE_SCRIPT = 'remove.sh';
const REMOVE_MS = 60_000;
/** Of the machine, and meant for programs in containers as well. */
const SHARED_VARIABLES = /^(LANG|LC_ALL|TZ|(https?|no)_proxy)$/i;

export interface ContainerOptions {
  /** Null: this machine has none that works. */
  host: ContainerHost | null;
  insideContainer: boolean;
  store: EnvironmentStore;
  /** Names the agent's data folder. */
  agent: string;
  env: NodeJS.ProcessEnv;
  clock: Clock;
}

/** `start` is the last step before the command, `remove` the first after it. */
export function containerSteps(options: ContainerOptions): { start: Step; remove: Step } {
  const needs = ({ environment }: AttemptOrder): boolean => !!environment?.image;
  return {
    start: {
      needsPreparation: needs,
      prepare: (preparation) => startInContainer(options, preparation),
    },
    remove: {
      needsFinish: needs,
      finish: ({ order }) => removeContainer(options, order.uid),
    },
  };
}

async function startInContainer(options: ContainerOptions, one: Preparation): Promise<void> {
  const { order, stage, home, task, facts, secrets, signal, say } = one;
  const { image, registrySecret, shmBytes } = order.environment!;
  const { host, store, clock } = options;
  if (host === null) throw new Unprepared(noRuntime(options), { hostFault: true });
  checkGpus(host, order);
  const clientEnv = clientEnvironment(options.env);
  const login = registrySecret ? parseLogin(registrySecret, secrets[registrySecret]) : undefined;
  const temporary = dirname(stage);
  const fetching = { host, store, clock, env: clientEnv, temporary, uid: order.uid, signal, say };
  const { start, digest } = await provideImage({ ...fetching, image, login });
  const isOwn = task.workdir === home || task.workdir.startsWith(`${home}/`);
  const container: Container = {
    name: nameOf(order.uid),
    uid: order.uid,
    agent: options.agent,
    image: start,
    command: task.command,
    workdir: task.workdir,
    home,
    env: insideEnvironment(one),
    mounts: mountsOf(one),
    gpus: gpusOf(order),
    shmBytes,
    cpuMillis: order.cpuMillis,
    memoryBytes: order.memoryBytes,
    user: { uid: process.getuid!(), gid: process.getgid!() },
  };
  const launch = launchBy(host, container, clientEnv);
  writeFiles(stage, launch, clientEnv);
  // A directory of the image is none of the machine: the runtime itself starts in the attempt's.
  const workdir = isOwn ? task.workdir : join(home, 'work');
  Object.assign(task, { command: launch.command, env: launch.env, enter: launch.enter, workdir });
  Object.assign(facts, { image, 'image.runtime': `${host.runtime} ${host.version}` });
  if (digest) facts['image.digest'] = digest;
}

function noRuntime({ insideContainer }: ContainerOptions): string {
  const none = 'this worker has no container runtime that works: podman, docker, Apptainer, enroot';
  if (!insideContainer) return none;
  return (
    `${none}; it is itself a container, and there the image is a matter of the instance: ` +
    'leave --image out'
  );
}

const nameOf = (uid: string): string => `drover-${uid}`;

function launchBy(host: ContainerHost, one: Container, env: Record<string, string>): Launch {
  if (host.runtime === 'apptainer') return apptainerLaunch(host, one, env);
  if (host.runtime === 'enroot') return enrootLaunch(host, one, env);
  return ociLaunch(host, one, env);
}

function writeFiles(
  stage: string,
  { files, folders = [], remove }: Launch,
  clientEnv: Record<string, string>,
): void {
  for (const name of folders) mkdirSync(join(stage, name), { mode: 0o700 });
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(stage, name), text, { mode: 0o600 });
  }
  if (!remove) return;
  const exports = Object.entries(clientEnv).map(
    ([name, value]) => `export ${name}=${quote(value)}`,
  );
  const lines = [...exports, `exec timeout 30 ${remove.map(quote).join(' ')}`, ''];
  writeFileSync(join(stage, REMOVE_SCRIPT), lines.join('\n'), { mode: 0o600 });
}

/** What the machine has in its environment is not the image's: its PATH, HOME, libraries. */
function insideEnvironment({ order, task, home }: Preparation): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(task.env)) {
    const isMachines = INHERITED_NAMES.includes(name) && !Object.hasOwn(order.env, name);
    if (!isMachines || SHARED_VARIABLES.test(name)) env[name] = value;
  }
  // A user that the image does not know has no home in it.
  if (process.getuid!() !== 0) env['HOME'] ??= join(home, 'work');
  return env;
}

/** Never the attempt's directory itself: it holds what is run outside. */
function mountsOf({ order, stage, home }: Preparation): Mount[] {
  const mounts: Mount[] = [];
  const has = (name: string): boolean => existsSync(join(stage, name));
  const own = ['work', RESULT_FOLDER, ...(has('checkpoint') ? ['checkpoint'] : [])];
  // Only what is there can be mounted: the file its own numbers go to is there from the start.
  writeFileSync(join(stage, METRICS_FILE), '', { mode: 0o600 });
  for (const name of [...own, METRICS_FILE]) {
    mounts.push({ source: join(home, name), readOnly: false });
  }
  for (const name of ['inputs', 'secrets', 'tokens'].filter(has)) {
    mounts.push({ source: join(home, name), readOnly: true });
  }
  if (!order.inputs) return mounts;
  const inputs = join(stage, 'inputs');
  for (const name of readdirSync(inputs)) {
    // Used where they lie: links that would lead nowhere inside.
    if (!lstatSync(join(inputs, name)).isSymbolicLink()) continue;
    mounts.push({ source: readlinkSync(join(inputs, name)), readOnly: true });
  }
  return mounts;
}

function gpusOf(order: AttemptOrder): number[] {
  if (order.gang?.visibleGpus.length) return order.gang.visibleGpus;
  return order.devices.filter(({ kind }) => kind === 'gpu').map(({ index }) => index);
}

function checkGpus({ runtime }: ContainerHost, order: AttemptOrder): void {
  if (runtime !== 'podman' || gpusOf(order).length === 0) return;
  const described = ['/etc/cdi', '/var/run/cdi'].some(
    (folder) => existsSync(folder) && readdirSync(folder).length > 0,
  );
  if (described) return;
  throw new Unprepared(
    'podman on this worker does not know its GPUs; its owner can tell it: ' +
      '`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`',
    { hostFault: true },
  );
}

/** Its processes are gone when this resolves, also those a KILL of the runtime left behind. */
async function removeContainer(options: ContainerOptions, uid: string): Promise<Kept> {
  const { host, clock } = options;
  if (host?.runtime !== 'podman' && host?.runtime !== 'docker') return {};
  const env = clientEnvironment(options.env);
  const name = nameOf(uid);
  const call = { program: host.program, env, clock, limitMs: REMOVE_MS };
  const format = '{{.State.OOMKilled}}';
  const looked = await runTool({ ...call, args: ['container', 'inspect', '-f', format, name] });
  if (looked.code !== 0) return {};
  const removed = await runTool({ ...call, args: removeWords(host, [name]) });
  if (removed.code !== 0) {
    throw new Error(`the container ${name} cannot be removed: ${removed.lastLines.join(' ')}`);
  }
  return looked.stdout.trim() === 'true' ? { message: 'it was out of memory' } : {};
}

/** Containers of attempts that are not here any more; the next start tries again what fails. */
export async function sweepContainers(
  options: ContainerOptions,
  attempts: string,
): Promise<string[]> {
  const { host, agent, clock } = options;
  if (host?.runtime !== 'podman' && host?.runtime !== 'docker') return [];
  const call = { program: host.program, env: clientEnvironment(options.env), clock };
  const filter = `label=${AGENT_LABEL}=${agent}`;
  const args = ['ps', '-a', '--filter', filter, '--format', '{{.Names}}'];
  const { code, stdout, lastLines } = await runTool({ ...call, args, limitMs: REMOVE_MS });
  if (code !== 0) throw new Error(lastLines.join(' '));
  const prefix = nameOf('');
  const names = stdout.split('\n').filter((name) => name.startsWith(prefix));
  const uids = names.map((name) => name.slice(prefix.length));
  const stray = uids.filter((uid) => !existsSync(join(attempts, uid)));
  if (stray.length === 0) return [];
  await runTool({ ...call, args: removeWords(host, stray.map(nameOf)), limitMs: REMOVE_MS });
  return stray;
}
