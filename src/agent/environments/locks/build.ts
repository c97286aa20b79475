/** How an environment is made from a lock file: which programs run, what the command then gets. */
import { existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { Unprepared } from '../../runtimes/around.ts';
import { findProgram } from '../tool.ts';
import { condaCommand, condaFiles } from './conda.ts';
import type { Lock } from './find.ts';

export interface Build {
  /** Part of the key: another tool makes another environment. */
  tool: string;
  /** Written into its folder first: by name, what they hold. */
  files?: Record<string, string>;
  /** One after another; each program with its arguments. */
  commands: string[][];
  /** Beside the job's own. */
  env: Record<string, string>;
}

/** Below an environment's folder. */
const TREE = 'env';
export const treeOf = (folder: string): string => join(folder, TREE);

/** `path`: where the job finds its programs, with its modules loaded. */
export function planBuild(lock: Lock, folder: string, path: string): Build {
  const { kind, file, name } = lock;
  const tree = treeOf(folder);
  const find = (program: string): string | undefined => findProgram(program, path);
  const uv = find('uv');
  if (kind === 'uv') {
    if (!uv) throw lacks(name, 'uv');
    const sync = [uv, 'sync', '--frozen', '--no-install-workspace', '--project', dirname(file)];
    return { tool: uv, commands: [sync], env: { UV_PROJECT_ENVIRONMENT: tree } };
  }
  if (kind === 'conda') return planConda(lock, folder, find);
  const python = find('python3');
  if (!python) throw lacks(name, 'python3');
  const inside = join(tree, 'bin', 'python');
  return {
    tool: uv ?? python,
    commands: uv
      ? [
          [uv, 'venv', '--python', python, tree],
          [uv, 'pip', 'install', '--python', inside, '-r', file],
        ]
      : [
          [python, '-m', 'venv', tree],
          [inside, '-m', 'pip', 'install', '--disable-pip-version-check', '-r', file],
        ],
    env: {},
  };
}

function planConda(
  { name, file, contents }: Lock,
  folder: string,
  find: (program: string) => string | undefined,
): Build {
  const tree = treeOf(folder);
  const conda = ['micromamba', 'mamba', 'conda'].map(find).find((one) => one !== undefined);
  if (conda) {
    const isMicro = conda.endsWith('micromamba');
    const create = isMicro ? ['create', '--yes'] : ['env', 'create', '--quiet'];
    return { tool: conda, commands: [[conda, ...create, '-p', tree, '-f', file]], env: {} };
  }
  const python = find('python3');
  if (!python) throw lacks(name, 'micromamba, mamba, conda or python3');
  const files = condaFiles(contents[0] ?? '', name);
  return { tool: python, files, commands: [condaCommand(python, folder, tree)], env: {} };
}

function lacks(name: string, programs: string): Unprepared {
  // Not the machine's fault: with one kind of worker it would be tried for ever.
  return new Unprepared(`this worker lacks ${programs}, which ${name} needs`);
}

/** What makes a command run in it. */
export function enterEnvironment(
  env: Record<string, string>,
  lock: Lock,
  folder: string,
  project: string,
): void {
  const tree = treeOf(folder);
  env['PATH'] = [join(tree, 'bin'), env['PATH']].filter(Boolean).join(delimiter);
  delete env['PYTHONHOME'];
  if (lock.kind === 'conda') {
    env['CONDA_PREFIX'] = tree;
    env['CONDA_DEFAULT_ENV'] = tree;
    env['CONDA_SHLVL'] = '1';
    return;
  }
  env['VIRTUAL_ENV'] = tree;
  if (lock.kind !== 'uv') return;
  // Where `uv run` is used it shall take this one, and leave it as it is.
  Object.assign(env, { UV_PROJECT_ENVIRONMENT: tree, UV_NO_SYNC: '1' });
  // The job's own package is not in the environment, which others share: it is found by its path.
  const source = existsSync(join(dirname(lock.file), 'src')) ? [join(project, 'src')] : [];
  const path = [...source, project, env['PYTHONPATH']];
  env['PYTHONPATH'] = path.filter(Boolean).join(delimiter);
}
