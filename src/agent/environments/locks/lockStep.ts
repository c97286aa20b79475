/** The environment a job's lock file describes: built once per machine, entered by its command. */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../lib/clock.ts';
import type { Step } from '../../around.ts';
import { Unprepared, type Preparation } from '../../runtimes/around.ts';
import { keyOf, type EnvironmentStore } from '../store.ts';
import { runTool, sayNowAndThen, withoutSecrets } from '../tool.ts';
import { activateConda } from './activate.ts';
import { enterEnvironment, planBuild, treeOf } from './build.ts';
import { findLock, type Lock } from './find.ts';

const VERSION_MS = 10_000;

export interface LockOptions {
  store: EnvironmentStore;
  clock: Clock;
}

export function lockStep(options: LockOptions): Step {
  return {
    needsPreparation: ({ environment }) => !!environment?.lock,
    async prepare(preparation) {
      const { order, stage, home, task, facts, say } = preparation;
      const folder = task.workdir.startsWith(home)
        ? stage + task.workdir.slice(home.length)
        : task.workdir;
      const lock = findLock(folder, order.environment!.lock);
      const key = await lockKey(options, lock, preparation);
      const built = await options.store.use(key, { uid: order.uid, say }, (own) =>
        build(options, lock, own, preparation),
      );
      enterEnvironment(task.env, lock, built, join(task.workdir, dirname(lock.name)));
      if (lock.kind === 'conda') {
        const { clock } = options;
        const call = { tree: treeOf(built), cwd: folder, clock, signal: preparation.signal };
        await activateConda(task.env, call);
      }
      facts['lock.file'] = lock.name;
      facts['lock.hash'] = `sha256:${keyOf(lock.contents)}`;
    },
  };
}

/** The same file makes something else with another Python, tool or set of modules. */
async function lockKey(
  { clock }: LockOptions,
  lock: Lock,
  { task, order, signal }: Preparation,
): Promise<string> {
  const path = task.env['PATH'] ?? '';
  const { tool } = planBuild(lock, '', path);
  const call = { env: { PATH: path }, clock, signal, limitMs: VERSION_MS };
  const version = async (program: string): Promise<string> => {
    try {
      return (await runTool({ ...call, program, args: ['--version'] })).stdout.trim();
    } catch (error) {
      signal.throwIfAborted();
      return (error as NodeJS.ErrnoException).code ?? '';
    }
  };
  const versions = [await version(tool), await version('python3')];
  return keyOf([lock.kind, ...lock.contents, ...versions, ...(order.environment?.modules ?? [])]);
}

async function build(
  { clock }: LockOptions,
  lock: Lock,
  own: string,
  { task, signal, say, secrets }: Preparation,
): Promise<void> {
  const { files = {}, commands, env } = planBuild(lock, own, task.env['PATH'] ?? '');
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(own, name), text, { mode: 0o600 });
  }
  const tell = sayNowAndThen(clock, (line) => say(withoutSecrets(line, secrets)));
  const cwd = dirname(lock.file);
  const call = { cwd, env: { ...task.env, ...env }, clock, signal };
  say(`building its environment from ${lock.name}`);
  for (const [program = '', ...args] of commands) {
    const onLine = (line: string): void => tell(`building its environment: ${line}`);
    const { code, lastLines } = await runTool({ ...call, program, args, onLine });
    if (code === 0) continue;
    const said = withoutSecrets(lastLines.join('; '), secrets);
    throw new Unprepared(`its environment could not be built from ${lock.name}: ${said}`);
  }
  // Others will use it: an installation by a job must go elsewhere.
  await runTool({ ...call, program: 'chmod', args: ['-R', 'a-w', treeOf(own)] });
}
