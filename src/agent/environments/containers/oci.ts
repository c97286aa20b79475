/** Docker and podman: how an attempt's command is started by them, entered and removed. */
import { join } from 'node:path';
import { Unprepared } from '../../runtimes/around.ts';
import { csvField, visibleInside, type Container, type Launch } from './container.ts';
import { isClientVariable, type ContainerHost } from './host.ts';

/** As for attempts without a container. */
const PIDS_LIMIT = 16_384;
/** Names are in everybody's view, values are not: those go by inheritance or by this file. */
const ENV_FILE = 'container.env';

const ATTEMPT_LABEL = 'drover.attempt';
export const AGENT_LABEL = 'drover.agent';

export function ociLaunch(
  host: ContainerHost,
  container: Container,
  clientEnv: Record<string, string>,
): Launch {
  const { name, image, command, workdir, home } = container;
  const { program } = host;
  const { inherited, filed } = environmentOf(container);
  const envFile = Object.entries(filed).map(([key, value]) => `${key}=${value}\n`);
  const run = [
    ...[program, 'run', '--name', name],
    ...['--label', `${ATTEMPT_LABEL}=${container.uid}`],
    ...['--label', `${AGENT_LABEL}=${container.agent}`],
    // The image was fetched before; the log is the attempt's own; the network is the machine's.
    ...['--pull=never', '--log-driver=none', '--network=host', '--entrypoint='],
    // Else a machine with SELinux hides what is mounted.
    ...['--security-opt', 'label=disable'],
    host.hasInit ? '--init' : '--pid=host',
    ...userWords(host, container),
    ...limitWords(host, container),
    ...gpuWords(host, container.gpus),
    ...(container.shmBytes > 0 ? [`--shm-size=${container.shmBytes}`] : []),
    ...container.mounts.flatMap(({ source, readOnly }) => {
      const fields = [`source=${source}`, `target=${source}`, ...(readOnly ? ['readonly'] : [])];
      return ['--mount', ['type=bind', ...fields.map(csvField)].join(',')];
    }),
    ...Object.keys(inherited).flatMap((key) => ['-e', key]),
    ...(envFile.length > 0 ? ['--env-file', join(home, ENV_FILE)] : []),
    ...['-w', workdir, image, ...command],
  ];
  const enter = (flags: string[]): string[] => [program, 'exec', ...flags, '-w', workdir, name];
  return {
    command: run,
    env: { ...clientEnv, ...inherited },
    enter: { piped: enter(['-i']), terminal: enter(['-i', '-t']) },
    files: envFile.length > 0 ? { [ENV_FILE]: envFile.join('') } : {},
    remove: [program, ...removeWords(host, [name])],
  };
}

/** At once: whoever removes one has given it its grace before. */
export function removeWords({ runtime }: ContainerHost, names: readonly string[]): string[] {
  return ['rm', '-f', '-v', ...(runtime === 'podman' ? ['-t', '0'] : []), ...names];
}

/** What the runtime itself would heed cannot be handed over through its own environment. */
function environmentOf({ env, gpus }: Container): Record<'inherited' | 'filed', typeof env> {
  const all = gpus.length > 0 ? { ...env, CUDA_VISIBLE_DEVICES: visibleInside(gpus) } : env;
  const inherited: Record<string, string> = {};
  const filed: Record<string, string> = {};
  for (const [name, value] of Object.entries(all)) {
    if (!isClientVariable(name)) inherited[name] = value;
    else if (!/[\r\n]/.test(value)) filed[name] = value;
    else throw new Unprepared(`the variable ${name} cannot have several lines in a container`);
  }
  return { inherited, filed };
}

/** Files it makes belong to the user who runs the agent, as without a container. */
function userWords({ runtime, rootless }: ContainerHost, { user }: Container): string[] {
  const words = ['--user', `${user.uid}:${user.gid}`];
  return runtime === 'podman' && rootless ? [...words, '--userns=keep-id'] : words;
}

function limitWords(host: ContainerHost, { cpuMillis, memoryBytes }: Container): string[] {
  if (host.sharesCgroup) return ['--cgroups=disabled'];
  return [
    `--pids-limit=${PIDS_LIMIT}`,
    ...(cpuMillis > 0 ? [`--cpus=${cpuMillis / 1000}`] : []),
    ...(memoryBytes > 0 ? [`--memory=${memoryBytes}b`] : []),
  ];
}

function gpuWords({ runtime }: ContainerHost, gpus: readonly number[]): string[] {
  if (gpus.length === 0) return [];
  return runtime === 'podman'
    ? gpus.flatMap((gpu) => ['--device', `nvidia.com/gpu=${gpu}`])
    : ['--gpus', `"device=${gpus.join(',')}"`];
}
