/** From an order to what the shim runs: its environment, what cannot work, and the script. */
import { accessSync, constants, statSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { AttemptOrder } from '../../protocol/agent.ts';
import type { CgroupHost } from './cgroups.ts';
import { ATTEMPT_MARKER } from './processes.ts';
import type { Shim } from './shim.ts';

/**
 * What a task inherits from the agent besides its order: where programs, home and proxies are.
 * Never all of it, because the agent's environment holds its own tokens.
 */
export const INHERITED_NAMES = (
  'PATH HOME USER LOGNAME SHELL LANG LC_ALL TZ TMPDIR LD_LIBRARY_PATH CUDA_HOME SSL_CERT_FILE ' +
  'REQUESTS_CA_BUNDLE http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY'
).split(' ');
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Linux: MAX_ARG_STRLEN, 32 pages, with the closing zero. */
const LONGEST_WORD_BYTES = 131_072;
/** Linux gives arguments and environment a quarter of the stack limit, 8 MiB nearly everywhere. */
const ALL_WORDS_BYTES = 2 * 1024 * 1024 - 16 * 1024;

/** What a command puts there, below the attempt's own directory, is kept with the job. */
export const RESULT_FOLDER = 'result';

/** `machineHasGpus`: then a task without any must see none. */
export function taskEnvironment(
  order: AttemptOrder,
  machineHasGpus: boolean,
): Record<string, string> {
  const env: Record<string, string> = { PATH: DEFAULT_PATH };
  for (const name of INHERITED_NAMES) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  Object.assign(env, order.env);
  const own = order.devices.filter((device) => device.kind === 'gpu').map(({ index }) => index);
  const gpus = order.gang?.visibleGpus.length ? order.gang.visibleGpus : own;
  if (gpus.length > 0 || machineHasGpus) {
    env['CUDA_VISIBLE_DEVICES'] = gpus.join(',');
    // Our indices are nvidia-smi's, by bus; CUDA on its own counts the fastest first.
    env['CUDA_DEVICE_ORDER'] = 'PCI_BUS_ID';
  }
  env[ATTEMPT_MARKER] = order.uid;
  return env;
}

/** What an order comes to on this machine. */
export interface Task {
  command: string[];
  env: Record<string, string>;
  workdir: string;
  /** Put before a command that shall run where this one does; absent: nothing is needed. */
  enter?: { piped: string[]; terminal: string[] };
}

export interface Refusal {
  message: string;
  exitCode: number | null;
}

/** What is wrong with the order itself, found before anything is started. */
export function findFault(order: AttemptOrder, task: Task): Refusal | undefined {
  return faultOfWords(task.command, task.env) ?? faultOfFiles(order, task);
}

const refuse = (message: string): Refusal => ({ message, exitCode: 126 });

function faultOfWords(command: string[], env: Record<string, string>): Refusal | undefined {
  let total = 0;
  const words: [string, string][] = command.map((word, i) => [
    `word ${i + 1} of the command`,
    word,
  ]);
  for (const name in env) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      return refuse(`not a name for an environment variable: ${JSON.stringify(name)}`);
    }
    words.push([`environment variable ${name}`, `${name}=${env[name]}`]);
  }
  for (const [what, word] of words) {
    const bytes = Buffer.byteLength(word) + 1;
    if (word.includes('\0')) return refuse(`${what} holds a NUL byte`);
    if (bytes > LONGEST_WORD_BYTES) {
      return refuse(`${what} is ${bytes - 1} bytes; Linux allows ${LONGEST_WORD_BYTES - 1}`);
    }
    total += bytes + 8;
  }
  if (total <= ALL_WORDS_BYTES) return undefined;
  return refuse(
    `argument list too long: command and environment are ${total} bytes together; ` +
      `Linux allows about ${ALL_WORDS_BYTES}`,
  );
}

function faultOfFiles(order: AttemptOrder, task: Task): Refusal | undefined {
  const { env, workdir } = task;
  const program = task.command[0];
  if (!program) return { message: 'the program to run is empty', exitCode: 127 };
  if (order.workdir !== '') {
    const directory = statSync(workdir, { throwIfNoEntry: false });
    if (!directory) return { message: `no such directory: ${workdir}`, exitCode: null };
    if (!directory.isDirectory()) return { message: `not a directory: ${workdir}`, exitCode: null };
  }
  const places = program.includes('/')
    ? [resolve(workdir, program)]
    : (env['PATH'] ?? '').split(delimiter).map((place) => join(resolve(workdir, place), program));
  const kinds = new Set(places.map(kindOfProgram));
  if (kinds.has('program')) return undefined;
  return kinds.has('not executable')
    ? { message: `not executable: ${program}`, exitCode: 126 }
    : { message: `command not found: ${program}`, exitCode: 127 };
}

function kindOfProgram(path: string): 'program' | 'not executable' | 'missing' {
  try {
    if (!statSync(path).isFile()) return 'not executable';
  } catch {
    // Missing, below a file, or behind a folder we may not enter: nothing that could be run.
    return 'missing';
  }
  try {
    accessSync(path, constants.X_OK);
    return 'program';
  } catch {
    return 'not executable';
  }
}

/** Puts limits and files into the shim's folder; nothing runs before the shim is told to go. */
export function prepareLaunch(
  cgroups: CgroupHost | undefined,
  shim: Shim,
  order: AttemptOrder,
  task: Task,
  machine: { pids: number; setsid: string },
): void {
  const { memoryBytes, cpuMillis } = order;
  const { pids, setsid } = machine;
  cgroups?.limit(shim.cgroups, { cpuMillis, memoryBytes, pids });
  const limits = cgroups ? [] : rlimitLines(memoryBytes, pids);
  const script = taskScript(task, limits, setsid);
  const mode = { mode: 0o600 };
  writeFileSync(join(shim.directory, 'order.json'), JSON.stringify(order), mode);
  writeFileSync(join(shim.directory, 'task.sh'), script, mode);
}

/** Without cgroups: a limit for each process, not for their sum, and none for CPU. */
function rlimitLines(memoryBytes: number, pids: number): string[] {
  // Data, not address space: CUDA reserves far more addresses than it ever uses.
  const data = memoryBytes > 0 ? [`ulimit -d ${Math.ceil(memoryBytes / 1024)} 2>/dev/null`] : [];
  // Counted per user, as the system does; the letter differs between shells. Where a limit cannot
  // be set, a lower one is in force already.
  return [...data, `{ ulimit -u ${pids} || ulimit -p ${pids}; } 2>/dev/null`];
}

/**
 * Read by the shim in the process that becomes the task. A file rather than arguments, because
 * those are visible to everybody on the machine.
 */
function taskScript(task: Task, limits: string[], setsid: string): string {
  const lines: string[] = [];
  for (const name in task.env) {
    // `command`: names a shell keeps for itself, like UID, cost a message and not the attempt.
    lines.push(`command export ${name}=${quote(task.env[name]!)}`);
  }
  lines.push(
    `cd ${quote(task.workdir)} || { echo 'its directory is gone' >failed; exit 125; }`,
    'unset OLDPWD',
    ...limits,
    `exec ${quote(setsid)} ${task.command.map(quote).join(' ')}`,
    '',
  );
  return lines.join('\n');
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
