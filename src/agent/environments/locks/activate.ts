/** What `conda activate` sets beside the PATH: variables of the environment and its scripts. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../../lib/clock.ts';
import { Unprepared } from '../../runtimes/around.ts';
import { findProgram, runTool } from '../tool.ts';

/** They set variables; one that does more than that must not hold up a job. */
const LIMIT_MS = 60_000;
/** The shell's own. */
const SHELL_VARIABLES = new Set(['_', 'SHLVL', 'PWD', 'OLDPWD']);
/** What they say is no variable. */
const SCRIPT = 'for file do . "$file" >&2; done; exec /usr/bin/env -0';

export interface ActivationCall {
  tree: string;
  cwd: string;
  clock: Clock;
  signal: AbortSignal;
}

/** Changes `env`, which has the tree on its PATH and CONDA_PREFIX set. */
export async function activateConda(
  env: Record<string, string>,
  { tree, cwd, clock, signal }: ActivationCall,
): Promise<void> {
  Object.assign(env, variablesOf(tree));
  const scripts = globSync('etc/conda/activate.d/*.sh', { cwd: tree }).toSorted();
  if (scripts.length === 0) return;
  const program = findProgram('bash', env['PATH'] ?? '') ?? '/bin/sh';
  const args = ['-c', SCRIPT, program, ...scripts.map((one) => join(tree, one))];
  const end = await runTool({ program, args, env, cwd, clock, signal, limitMs: LIMIT_MS });
  if (end.code !== 0) {
    // Its last lines hold variables, which may be secret.
    const where = 'etc/conda/activate.d of its environment';
    throw new Unprepared(`the scripts in ${where} ended with ${end.code ?? 'a signal'}`);
  }
  for (const line of end.stdout.split('\0')) {
    const name = line.slice(0, Math.max(0, line.indexOf('=')));
    if (name !== '' && !SHELL_VARIABLES.has(name)) env[name] = line.slice(name.length + 1);
  }
}

/** As conda keeps them: each package's own, then those of the environment file. */
function variablesOf(tree: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const file of globSync('etc/conda/env_vars.d/*.json', { cwd: tree }).toSorted()) {
    Object.assign(found, readVariables(join(tree, file)));
  }
  const state = join(tree, 'conda-meta', 'state');
  const named = existsSync(state) ? readVariables(state)['env_vars'] : undefined;
  return { ...found, ...(named as Record<string, string> | undefined) };
}

function readVariables(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
}
