/** Enroot: a root made from the image beforehand, shared and not written to. */
import { dirname, join } from 'node:path';
import { quote, visibleInside, type Container, type Launch } from './container.ts';
import { isClientVariable, type ContainerHost } from './host.ts';

/** The name of the one root in an image's own data folder. */
export const ENROOT_ROOT = 'image';
const RC_FILE = 'container.rc';

/** `container.image` is that root: its parent is enroot's data folder. */
export function enrootLaunch(
  { program }: ContainerHost,
  container: Container,
  clientEnv: Record<string, string>,
): Launch {
  const { command, workdir, home, mounts, gpus } = container;
  const inside: Record<string, string> = {};
  const exports: string[] = [];
  for (const [name, value] of Object.entries(container.env)) {
    // What enroot itself would heed is set only inside.
    if (isClientVariable(name)) exports.push(`export ${name}=${quote(value)}\n`);
    else inside[name] = value;
  }
  if (gpus.length > 0) {
    inside['NVIDIA_VISIBLE_DEVICES'] = gpus.toSorted((a, b) => a - b).join(',');
    inside['CUDA_VISIBLE_DEVICES'] = visibleInside(gpus);
  }
  const start = [
    ...[program, 'start', '--rc', join(home, RC_FILE)],
    ...mounts.flatMap(({ source, readOnly }) => [
      '--mount',
      `${source}:${source}:x-create=auto,rbind${readOnly ? ',ro' : ''}`,
    ]),
    ...Object.keys(inside).flatMap((name) => ['--env', name]),
    ENROOT_ROOT,
  ];
  return {
    command: [...start, ...command],
    env: { ...clientEnv, ...inside, ENROOT_DATA_PATH: dirname(container.image) },
    enter: { piped: start, terminal: start },
    // Instead of the image's own, which would put its entrypoint before the command.
    files: { [RC_FILE]: `${exports.join('')}cd ${quote(workdir)} || exit 1\nexec "$@"\n` },
  };
}
