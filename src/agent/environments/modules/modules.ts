/** Modules of the machine (Lmod, Environment Modules): loaded, and their variables kept. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../../lib/clock.ts';
import type { Step } from '../../around.ts';
import { Unprepared } from '../../runtimes/around.ts';
import { findProgram, runTool, withoutSecrets } from '../tool.ts';

/** Loading is reading small files; what takes longer waits for a file system that hangs. */
const LOAD_MS = 60_000;
/** Marks where, in what the shell says, the variables begin. */
const MARK = '--- drover: variables ---';
const SCRIPT = `. "$1" >&2 || exit 3
shift
type module >/dev/null 2>&1 || { echo "$0 defines no command module" >&2; exit 3; }
for one; do
  module load "$one" >&2 || exit 4
done
printf '%s\\0' '${MARK}'
env -0
`;
/** Of the shell itself. */
const OWN = new Set(['_', 'SHLVL', 'PWD', 'OLDPWD', 'BASH_ENV', 'ENV']);
/** Where the machine's modules are, as its login shells are told. */
const MACHINE_VARIABLES = /^(MODULE(PATH|SHOME|S_\w+|RCFILE)|LMOD_\w+)$/;

export interface ModuleOptions {
  env: NodeJS.ProcessEnv;
  clock: Clock;
}

export function moduleStep({ env, clock }: ModuleOptions): Step {
  return {
    needsPreparation: ({ environment }) => (environment?.modules.length ?? 0) > 0,
    async prepare({ order, task, secrets, facts, signal, say }) {
      const { modules } = order.environment!;
      const init = findInit(env);
      if (init === undefined) {
        throw new Unprepared('this worker has no environment modules (neither Lmod nor another)');
      }
      say(`loading modules: ${modules.join(' ')}`);
      const path = env['PATH'] ?? '/usr/bin:/bin';
      const program = findProgram('bash', path) ?? '/bin/sh';
      const machine = Object.entries(env).filter(([name]) => MACHINE_VARIABLES.test(name));
      const call = { program, clock, signal, limitMs: LOAD_MS };
      const given = { ...(Object.fromEntries(machine) as typeof task.env), ...task.env };
      const args = ['-c', SCRIPT, init, init, ...modules];
      const { code, stdout, lastLines } = await runTool({ ...call, args, env: given });
      const at = stdout.lastIndexOf(`${MARK}\0`);
      if (code !== 0 || at < 0) {
        const said = withoutSecrets(lastLines.join(' '), secrets);
        throw new Unprepared(`module load ${modules.join(' ')} failed on this worker: ${said}`);
      }
      task.env = { ...keptOf(stdout.slice(at + MARK.length + 1)) };
      facts['modules'] = task.env['LOADEDMODULES']?.replaceAll(':', ' ') ?? modules.join(' ');
    },
  };
}

/** Functions that a shell exports are no variables of the command. */
function keptOf(text: string): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const entry of text.split('\0')) {
    const at = entry.indexOf('=');
    const name = entry.slice(0, at);
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !OWN.has(name)) kept[name] = entry.slice(at + 1);
  }
  return kept;
}

/** The script that defines `module` in a shell. */
function findInit(env: NodeJS.ProcessEnv): string | undefined {
  const homes = [env['MODULESHOME'], env['LMOD_PKG']].filter((home) => home !== undefined);
  const places = [
    ...homes.map((home) => join(home, 'init', 'sh')),
    '/usr/share/lmod/lmod/init/sh',
    '/opt/ohpc/admin/lmod/lmod/init/sh',
    '/usr/share/modules/init/sh',
    '/usr/share/Modules/init/sh',
    '/etc/profile.d/lmod.sh',
    '/etc/profile.d/modules.sh',
  ];
  return places.find((place) => existsSync(place));
}
