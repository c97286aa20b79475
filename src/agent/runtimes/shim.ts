/**
 * The shim: a small `sh` that stands between agent and task, so that a task's end is recorded even
 * when no agent lives. Shims are started ahead of need: joining a cgroup costs some 10 ms on an
 * idle machine, so one always waits, already inside its cgroups, in a spare folder that a start
 * renames into place.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Socket } from 'node:net';
import type { Log } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { CgroupHost } from './cgroups.ts';
import { readCgroupDirectories, type DataFolder } from './folder.ts';
import { RESULT_FOLDER } from './task.ts';

/**
 * Runs with the attempt's folder as its working directory, which stays true across the rename; in a
 * session of its own (spawned detached) and with a clean environment. Arguments: boot id, wake
 * FIFO, path of mv, then the cgroup.procs files to join.
 *
 * - The task is the foreground child: a background one would have SIGINT ignored for ever.
 * - The task writes `pid` itself, before it becomes the command, if nobody else did (set -C):
 *   whoever creates `pid` decides whether the attempt runs, so a stop or a new agent can say no.
 * - fd 2 of the shim is the exit file: a shell prints there what killed its child, which tells
 *   `exit 137` from a KILL. The file was filled beforehand and is overwritten, so a full disk loses
 *   nothing. It is not synced: after a power cut the task is gone with the boot id anyway.
 * - The wake FIFO is opened for reading and writing: it neither blocks nor breaks alone.
 */
export const SHIM_SCRIPT = `# Written by drover: runs one attempt and records how it ended.
boot=$1 wake=$2 mv=$3
shift 3
identify() {
  read -r stat </proc/self/stat
  pid=\${stat%% *}
  set -- \${stat##*) }
  began=\${20}
}
identify
shim="$pid $began"
exec 4>&2 2<>exit.tmp
(
  exec 2>&4 4>&-
  broken=
  for procs; do
    echo 0 2>/dev/null >"$procs" || broken=$procs
  done
  read -r uid <&3 || exit 0
  exec 3<&-
  identify
  set -C
  echo "$pid $began $shim $boot $uid" 2>/dev/null >pid || exit 0
  set +C
  echo "$uid" 1<>"$wake"
  if [ -n "$broken" ]; then
    echo "could not join the cgroup $broken" >failed
    exit 125
  fi
  . ./task.sh
)
code=$?
[ -s pid ] || exit 0
echo "code $code" >&2
exec 2>/dev/null 3<&- 4>&-
"$mv" -f exit.tmp exit
read -r task began shim shim_began boot uid <pid
echo "$uid" 1<>"$wake"
`;

/** Enough for what a shell says about a killed child; one disk block in practice. */
const EXIT_FILE_BYTES = 1024;

export interface Shim {
  /** The spare folder; the caller renames it before `go`. */
  directory: string;
  cgroups: string[];
  child: ChildProcess;
  go(uid: string): void;
}

export interface Shims {
  /**
   * A shim that waits for its order, started beforehand if there was time. Throws when it cannot.
   */
  take(): Shim;
  /** Starts the next one ahead of need. */
  refill(): void;
  discard(shim: Shim): void;
  close(): Promise<void>;
}

export interface ShimOptions {
  folder: DataFolder;
  bootId: string;
  mv: string;
  cgroups: CgroupHost | undefined;
  random: Random;
  log: Log;
}

export function createShims(options: ShimOptions): Shims {
  let spare: Shim | undefined;
  let closed = false;
  const discard = (shim: Shim): void => {
    orderPipe(shim.child).destroy();
    const remove = (): void => removeSpare(options, shim.directory, shim.cgroups);
    if (hasEnded(shim.child)) remove();
    else shim.child.once('exit', remove);
  };
  return {
    take() {
      const taken = spare;
      spare = undefined;
      return taken && !hasEnded(taken.child) ? taken : startShim(options);
    },
    refill() {
      if (closed || (spare && !hasEnded(spare.child))) return;
      try {
        removeOldSpares(options);
        spare = startShim(options);
      } catch (error) {
        spare = undefined;
        options.log.warn({ error }, 'no shim could be started ahead of need');
      }
    },
    discard,
    async close() {
      closed = true;
      const last = spare;
      spare = undefined;
      if (last && !hasEnded(last.child)) {
        const ended = new Promise((resolve) => last.child.once('exit', resolve));
        orderPipe(last.child).destroy();
        await ended;
      }
      removeOldSpares(options);
    },
  };
}

function startShim(options: ShimOptions): Shim {
  const name = options.random.hex(8);
  const directory = join(options.folder.spares, name);
  mkdirSync(join(directory, 'work'), { recursive: true, mode: 0o700 });
  mkdirSync(join(directory, RESULT_FOLDER), { mode: 0o700 });
  let cgroups: string[] = [];
  const descriptors: number[] = [];
  try {
    cgroups = options.cgroups?.create(name) ?? [];
    writeFileSync(join(directory, 'cgroups'), cgroups.map((path) => `${path}\n`).join(''));
    writeFileSync(join(directory, 'exit.tmp'), ' '.repeat(EXIT_FILE_BYTES));
    for (const stream of ['stdout', 'stderr']) {
      descriptors.push(openSync(join(directory, stream), 'a', 0o600));
    }
    const { shim, wake } = options.folder;
    const procs = cgroups.map((path) => join(path, 'cgroup.procs'));
    const child = spawn('/bin/sh', [shim, options.bootId, wake, options.mv, ...procs], {
      cwd: directory,
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
      detached: true,
      stdio: ['ignore', descriptors[0], descriptors[1], 'pipe'],
    });
    child.once('error', (error) => options.log.error({ error }, 'a shim could not be started'));
    if (child.pid === undefined) throw new Error('cannot start another process');
    child.unref();
    const pipe = orderPipe(child);
    // A shim that was killed is noticed by its exit; the broken pipe says nothing more.
    pipe.on('error', (error) => options.log.debug({ error }, 'a shim went away'));
    pipe.unref();
    return { directory, cgroups, child, go: (uid) => pipe.end(`${uid}\n`) };
  } catch (error) {
    removeSpare(options, directory, cgroups);
    throw error;
  } finally {
    for (const descriptor of descriptors) closeSync(descriptor);
  }
}

function orderPipe(child: ChildProcess): Socket {
  return child.stdio[3] as Socket;
}

export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Kept for the next sweep while a process is still leaving the cgroup. */
function removeSpare(options: ShimOptions, directory: string, cgroups: string[]): void {
  if (options.cgroups && !options.cgroups.remove(cgroups)) return;
  rmSync(directory, { recursive: true, force: true });
}

/** Called when none waits: what is there was left by an agent that died, or by a shim that did. */
function removeOldSpares(options: ShimOptions): void {
  for (const name of readdirSync(options.folder.spares)) {
    const directory = join(options.folder.spares, name);
    removeSpare(options, directory, readCgroupDirectories(directory));
  }
}
