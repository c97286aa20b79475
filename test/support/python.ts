/** Packages of PyPI for tests, in an environment that is made once and kept in .cache. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './journey.ts';

const run = promisify(execFile);
/** A few megabytes from a registry, on a machine that does other things too. */
const INSTALL_MS = 280_000;
/** For the hook that calls `pythonWith`. */
export const PYTHON_HOOK_MS = 300_000;

/** The `bin` folder of an environment that has these, each as NAME==VERSION. */
export async function pythonWith(packages: string[]): Promise<string> {
  const name = createHash('sha256').update(packages.join(' ')).digest('hex').slice(0, 12);
  const folder = path.join(ROOT, '.cache/python', name);
  const bin = path.join(folder, 'bin');
  // Written last: what was interrupted is made anew.
  const done = path.join(folder, 'drover-installed');
  if (existsSync(done)) return bin;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(path.dirname(folder), { recursive: true });
  await run('python3', ['-m', 'venv', folder], { timeout: INSTALL_MS });
  const args = ['install', '--quiet', '--disable-pip-version-check', ...packages];
  await run(path.join(bin, 'pip'), args, { timeout: INSTALL_MS });
  writeFileSync(`${done}.new`, packages.join('\n'));
  renameSync(`${done}.new`, done);
  return bin;
}
