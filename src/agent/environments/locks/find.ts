/** Lock files in a job's code: which there is, and what an environment made from it depends on. */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { Unprepared } from '../../runtimes/around.ts';
import { LOCK_FILES } from '../../../model/jobParts.ts';

type LockKind = 'uv' | 'requirements' | 'conda';

export interface Lock {
  kind: LockKind;
  /** Relative to the working directory, for a person. */
  name: string;
  file: string;
  /** All that decides what is built, with what it refers to. */
  contents: string[];
}

/** `wanted`: `auto`, or a path below `folder`, which is the command's working directory. */
export function findLock(folder: string, wanted: string): Lock {
  const name = wanted === 'auto' ? LOCK_FILES.find((one) => existsSync(join(folder, one))) : wanted;
  if (name === undefined) {
    throw new Unprepared(`there is none of ${LOCK_FILES.join(', ')} in its working directory`);
  }
  const file = join(folder, name);
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) {
    throw new Unprepared(`there is no lock file ${name} in its working directory`);
  }
  const kind = kindOf(name);
  return { kind, name, file, contents: contentsOf(kind, file, folder) };
}

function kindOf(name: string): LockKind {
  const base = basename(name);
  if (base === 'uv.lock') return 'uv';
  if (/\.(txt|in|lock)$/.test(base)) return 'requirements';
  if (/\.ya?ml$/.test(base)) return 'conda';
  throw new Unprepared(`${name} is no lock file that is known: ${LOCK_FILES.join(', ')}`);
}

function contentsOf(kind: LockKind, file: string, folder: string): string[] {
  if (kind === 'conda') return [readFileSync(file, 'utf8')];
  if (kind === 'requirements') return requirementsOf(file, folder, new Set());
  const project = join(dirname(file), 'pyproject.toml');
  if (!existsSync(project)) {
    throw new Unprepared(`beside ${relative(folder, file)} there is no pyproject.toml`);
  }
  const python = join(dirname(file), '.python-version');
  const files = [file, project, ...(existsSync(python) ? [python] : [])];
  return files.map((one) => readFileSync(one, 'utf8'));
}

/** With the files it names; what is installed from a folder of the job is refused. */
function requirementsOf(file: string, folder: string, seen: Set<string>): string[] {
  const name = relative(folder, file);
  if (!existsSync(file)) throw new Unprepared(`there is no file ${name}, which another one names`);
  const real = realpathSync(file);
  if (seen.has(real)) return [];
  seen.add(real);
  const text = readFileSync(file, 'utf8');
  const others: string[] = [];
  for (const [at, line] of text.split('\n').entries()) {
    const named = /^\s*(?:-r|--requirement|-c|--constraint)[\s=]+(\S+)/.exec(line)?.[1];
    if (named !== undefined && !named.includes('://')) {
      others.push(...requirementsOf(resolve(dirname(file), named), folder, seen));
    } else if (installsFolder(line)) {
      throw new Unprepared(
        `${name} line ${at + 1} installs a folder (${line.trim().slice(0, 100)}), but its ` +
          'environment is shared by all jobs with the same file: take the line out and set ' +
          'PYTHONPATH instead',
      );
    }
  }
  return [text, ...others];
}

/** A line for pip that means something of the job's own. */
export function installsFolder(line: string): boolean {
  return /^\s*(-e|--editable)\b|^\s*\.{0,2}\/|^\s*\.\s*$|@\s*file:|^\s*file:/.test(line);
}
