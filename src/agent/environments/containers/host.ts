/** Which of the container runtimes this machine has, found once when the agent starts. */
import { existsSync, readFileSync } from 'node:fs';
import type { Clock } from '../../../lib/clock.ts';
import { findProgram, runTool } from '../tool.ts';

const CONTAINER_RUNTIMES = ['podman', 'docker', 'apptainer', 'enroot'] as const;
export type ContainerRuntime = (typeof CONTAINER_RUNTIMES)[number];

export interface ContainerHost {
  runtime: ContainerRuntime;
  /** Its path; Apptainer may still be called singularity. */
  program: string;
  version: string;
  /** Podman: containers stay in the attempt's own cgroup, whose limits then hold for them. */
  sharesCgroup: boolean;
  /** Podman: without an init, commands must not be process 1, which no signal ends. */
  hasInit: boolean;
  /** Podman as a plain user. */
  rootless: boolean;
}

export type Wanted = ContainerRuntime | 'auto' | 'none';

/** A daemon that does not answer within this is not there. */
const PROBE_MS = 15_000;
/** Where podman looks for its init. */
const INITS = ['/usr/libexec/podman/catatonit', '/usr/lib/podman/catatonit', '/usr/bin/catatonit'];

/**
 * What the runtimes themselves read: where their daemon, storage and settings are. Jobs must not
 * turn these, and do not get them.
 */
const CLIENT_VARIABLES = new RegExp(
  '^(PATH|HOME|USER|LOGNAME|TMPDIR|LD_\\w+|GODEBUG|SSL_CERT_\\w+|(https?|all|no)_proxy' +
    '|(XDG|DBUS|DOCKER|CONTAINERS?|STORAGE|BUILDAH|APPTAINER|SINGULARITY|ENROOT|REGISTRY)_\\w+)$',
  'i',
);

export const isClientVariable = (name: string): boolean => CLIENT_VARIABLES.test(name);

/** What a runtime is called with, of the agent's own environment. */
export function clientEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && isClientVariable(name)) found[name] = value;
  }
  return found;
}

export interface Detected {
  host: ContainerHost | null;
  /** For a person: why those that are installed cannot be used. */
  problems: string[];
}

/** The first of those wanted that works. */
export async function detectContainers(
  wanted: Wanted,
  env: NodeJS.ProcessEnv,
  clock: Clock,
): Promise<Detected> {
  const problems: string[] = [];
  const tried = wanted === 'auto' ? CONTAINER_RUNTIMES : wanted === 'none' ? [] : [wanted];
  for (const runtime of tried) {
    const names = runtime === 'apptainer' ? ['apptainer', 'singularity'] : [runtime];
    const programs = names.map((name) => findProgram(name, env['PATH'] ?? ''));
    const program = programs.find((path) => path !== undefined);
    if (program === undefined) {
      if (wanted !== 'auto') problems.push(`there is no ${runtime} on the PATH`);
      continue;
    }
    const found = await probe(runtime, program, clientEnvironment(env), clock);
    if (typeof found !== 'string') return { host: found, problems };
    problems.push(`${program} does not work: ${found}`);
  }
  return { host: null, problems };
}

const PROBES: Record<ContainerRuntime, string[]> = {
  podman: ['info', '--format', 'json'],
  docker: ['version', '--format', '{{.Server.Version}}'],
  apptainer: ['--version'],
  enroot: ['version'],
};

async function probe(
  runtime: ContainerRuntime,
  program: string,
  env: Record<string, string>,
  clock: Clock,
): Promise<ContainerHost | string> {
  try {
    const call = { program, args: PROBES[runtime], env, clock, limitMs: PROBE_MS };
    const { code, stdout, lastLines } = await runTool(call);
    if (code !== 0) return lastLines.join(' ');
    const plain = { runtime, program, sharesCgroup: false, hasInit: true, rootless: false };
    return runtime === 'podman'
      ? { ...plain, ...readPodman(stdout) }
      : { ...plain, version: stdout.trim() };
  } catch (error) {
    return (error as Error).message;
  }
}

interface PodmanInfo {
  host?: {
    cgroupVersion?: string;
    ociRuntime?: { name?: string };
    security?: { rootless?: boolean };
  };
  version?: { Version?: string };
}

function readPodman(
  text: string,
): Pick<ContainerHost, 'version' | 'sharesCgroup' | 'hasInit' | 'rootless'> {
  const { host, version } = JSON.parse(text) as PodmanInfo;
  return {
    version: version?.Version ?? '',
    // Only crun can leave a container where it is, and only with one cgroup hierarchy.
    sharesCgroup: host?.ociRuntime?.name === 'crun' && host.cgroupVersion === 'v2',
    hasInit: INITS.some((path) => existsSync(path)),
    rootless: host?.security?.rootless ?? false,
  };
}

/** Whether this machine is itself a container, whose image was chosen with the instance. */
export function isInsideContainer(): boolean {
  if (existsSync('/.dockerenv') || existsSync('/run/.containerenv')) return true;
  try {
    return /docker|kubepods|containerd|libpod|lxc/.test(readFileSync('/proc/1/cgroup', 'utf8'));
  } catch {
    // Without /proc there is nothing that says so.
    return false;
  }
}
