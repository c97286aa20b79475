/**
 * Apptainer, also under its old name: the command stays a plain process of the machine in another
 * root, so limits, signals and lists of processes are those of any attempt.
 */
import { basename, join } from 'node:path';
import { csvField, type Container, type Launch } from './container.ts';
import type { ContainerHost } from './host.ts';

/** What it shows of the machine unless told otherwise; /tmp is then a folder of the attempt. */
const NOT_SHOWN = 'home,tmp,cwd,hostfs';
const TEMPORARY = 'tmp';

export function apptainerLaunch(
  { program }: ContainerHost,
  container: Container,
  clientEnv: Record<string, string>,
): Launch {
  const { image, command, workdir, home, mounts, gpus } = container;
  const prefix = basename(program) === 'singularity' ? 'SINGULARITYENV_' : 'APPTAINERENV_';
  const inside: Record<string, string> = {};
  for (const [name, value] of Object.entries(container.env)) {
    // It is given as a flag; by a variable it is refused.
    if (name !== 'HOME') inside[`${prefix}${name}`] = value;
  }
  const start = [
    ...[program, '--silent', 'exec', '--cleanenv', '--writable-tmpfs'],
    ...['--home', container.env['HOME'] ?? join(home, 'work')],
    ...(gpus.length > 0 ? ['--nv'] : []),
    ...['--no-mount', NOT_SHOWN, ...mount(join(home, TEMPORARY), '/tmp')],
    ...mounts.flatMap(({ source, readOnly }) => mount(source, source, readOnly)),
    ...['--pwd', workdir, image],
  ];
  return {
    command: [...start, ...command],
    env: { ...clientEnv, ...inside },
    // There is no container to enter: the same root and mounts once more.
    enter: { piped: start, terminal: start },
    files: {},
    folders: [TEMPORARY],
  };
}

function mount(source: string, destination: string, readOnly = false): string[] {
  const fields = [`source=${source}`, `destination=${destination}`, ...(readOnly ? ['ro'] : [])];
  return ['--mount', ['type=bind', ...fields.map(csvField)].join(',')];
}
