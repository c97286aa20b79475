/**
 * A real Slurm of two nodes with devices that only count, on this machine, in a folder of its own:
 * own ports, own munge. Its daemons can be killed and started one by one; nothing outlives `close`.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from './postgres.ts';
import { killPid, processesOf, startProcess, tail, type TestProcess } from './processes.ts';
import { programsAreHere } from './programs.ts';
import {
  NODES,
  writeSlurmFiles,
  type SlurmConf,
  type SlurmFiles,
  type SlurmPorts,
} from './slurmSettings.ts';
import { processesOn } from './slurmProcesses.ts';
import { until } from './wait.ts';

interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/** One job as squeue shows it, also for a while after its end. */
export interface SlurmJob {
  /** Of an array's task `<array>_<index>`. */
  id: string;
  state: string;
  reason: string;
  nodes: string;
  name: string;
  comment: string;
  partition: string;
  account: string;
  restarts: number;
}

export interface Slurm {
  root: string;
  conf: string;
  /** What a process needs to talk to this Slurm. */
  env(): Record<string, string>;
  /** Runs a command; how it ended is for the caller to judge. */
  run(command: readonly string[], input?: string): Promise<Ran>;
  /** The same where anything but success is an error; gives what it printed, trimmed. */
  ask(...command: string[]): Promise<string>;
  jobs(): Promise<SlurmJob[]>;
  /** Those that wait, run or are about to end. */
  liveJobs(): Promise<SlurmJob[]>;
  nodeState(node: string): Promise<string>;
  /** As `kill -9` of the daemon alone: what runs on the node goes on. */
  killSlurmd(node: string): Promise<void>;
  /** As a power cut: the daemon and everything that Slurm started on the node. */
  crashNode(node: string): Promise<void>;
  startSlurmd(node: string): Promise<void>;
  downNode(node: string): Promise<void>;
  resumeNode(node: string): Promise<void>;
  stopController(): Promise<void>;
  startController(): Promise<void>;
  /** Ends all jobs and daemons, and throws if a process of it is left. */
  close(): Promise<void>;
}

const LIVE = /PENDING|RUNNING|CONFIGURING|COMPLETING|SUSPENDED|REQUEUE|STOPPED|SIGNALING|STAGE_OUT/;
const COMMAND_LIMIT_MS = 60_000;

/** False, said out loud, where Slurm is not installed; with CI=true that is an error. */
export function slurmIsHere(): boolean {
  const slurm = { slurmctld: 'slurmctld', slurmd: 'slurmd', sbatch: 'slurm-client' };
  return programsAreHere({ ...slurm, munged: 'munge' });
}

export async function startSlurm(options: SlurmConf = {}): Promise<Slurm> {
  const root = mkdtempSync(path.join(tmpdir(), 'drover-slurm-'));
  const ports: SlurmPorts = { controller: await freePort(), nodes: {} };
  for (const { name } of NODES) ports.nodes[name] = await freePort();
  const files = writeSlurmFiles(root, ports, options);
  const daemons = createDaemons(root, files);
  const commands = createCommands(files);
  const slurm: Slurm = {
    root,
    conf: files.conf,
    ...commands,
    ...nodeVerbs(daemons, commands),
    async close() {
      try {
        const left = await commands.liveJobs();
        if (left.length > 0) await commands.run(['scancel', ...left.map(({ id }) => id)]);
        if (left.length > 0) {
          await until('all jobs ended', async () => (await commands.liveJobs()).length === 0);
        }
        await daemons.stopAll();
      } finally {
        for (const { pid } of processesOf([root])) killPid(pid, 'SIGKILL');
        rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
      }
    },
  };
  try {
    await startAll(slurm, daemons);
  } catch (error) {
    const said = daemons.output();
    for (const { pid } of processesOf([root])) killPid(pid, 'SIGKILL');
    rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    throw new Error(`Slurm did not start:\n${said}`, { cause: error });
  }
  return slurm;
}

async function startAll(slurm: Slurm, daemons: Daemons): Promise<void> {
  daemons.start('munged');
  await until(
    'munge answers',
    async () => (await slurm.run(['munge', '-n', '-S', daemons.socket])).code === 0,
  );
  await slurm.startController();
  await Promise.all(NODES.map(({ name }) => slurm.startSlurmd(name)));
}

interface Daemons {
  socket: string;
  start(name: string): void;
  stop(name: string, signal?: NodeJS.Signals): Promise<void>;
  stopAll(): Promise<void>;
  output(): string;
}

/** In the foreground, so that they are our children and their pids are known. */
function createDaemons(root: string, files: SlurmFiles): Daemons {
  const running = new Map<string, TestProcess>();
  const all: TestProcess[] = [];
  const socket = files.mungeSocket;
  const munge = (name: string): string => path.join(root, 'munge', name);
  const commandOf = (name: string): string[] => {
    if (name === 'slurmctld') return ['slurmctld', '-D', '-f', files.conf];
    if (name !== 'munged') return ['slurmd', '-D', '-N', name, '-f', files.conf];
    const places = [`--key-file=${files.mungeKey}`, `--pid-file=${munge('pid')}`];
    return [
      ...['munged', '--foreground', '--force', `--socket=${socket}`, ...places],
      ...[`--seed-file=${munge('seed')}`, `--log-file=${munge('log')}`],
    ];
  };
  return {
    socket,
    start(name) {
      const env = { PATH: systemPath(), SLURM_CONF: files.conf };
      const started = startProcess(commandOf(name), { cwd: root, env });
      running.set(name, started);
      all.push(started);
    },
    async stop(name, signal = 'SIGTERM') {
      await running.get(name)?.stop(signal);
      running.delete(name);
    },
    async stopAll() {
      for (const name of ['slurmctld', ...NODES.map((node) => node.name), 'munged']) {
        await this.stop(name);
      }
    },
    output: () => all.map((one) => tail(one.output(), 15)).join('\n--\n'),
  };
}

type Commands = Pick<Slurm, 'env' | 'run' | 'ask' | 'jobs' | 'liveJobs' | 'nodeState'>;

function createCommands(files: SlurmFiles): Commands {
  const env = (): Record<string, string> => ({
    SLURM_CONF: files.conf,
    PATH: `${files.bin}:${systemPath()}`,
    HOME: files.home,
  });
  const run = (command: readonly string[], input?: string): Promise<Ran> =>
    new Promise((resolve, reject) => {
      const [program = '', ...args] = command;
      const settings = { env: env(), timeout: COMMAND_LIMIT_MS, maxBuffer: 1 << 28, cwd: '/' };
      const child = execFile(program, args, settings, (error, stdout, stderr) => {
        const code = error?.code ?? 0;
        if (typeof code === 'number') resolve({ code, stdout, stderr });
        else reject(error ?? new Error(`${program} ended without a code`));
      });
      child.stdin?.on('error', () => undefined); // It may end without reading.
      child.stdin?.end(input ?? '');
    });
  const ask = async (...command: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(command);
    if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${stderr}`);
    return stdout.trim();
  };
  const jobs = async (): Promise<SlurmJob[]> =>
    jobsOf(await ask('squeue', '--noheader', '--array', '--states=all', `--Format=${FIELDS}`));
  return {
    env,
    run,
    ask,
    jobs,
    liveJobs: async () => (await jobs()).filter(({ state }) => LIVE.test(state)),
    nodeState: (node) => ask('sinfo', '-h', '-N', '-p', 'gpu', '-n', node, '-o', '%T'),
  };
}

const COLUMNS = ['JobArrayID', 'State', 'Reason', 'NodeList', 'Name', 'Comment'];
const MORE_COLUMNS = ['Partition', 'Account', 'RestartCnt'];
const FIELDS = [...COLUMNS, ...MORE_COLUMNS].map((name) => `${name}:\u001f`).join(',');

function jobsOf(text: string): SlurmJob[] {
  return text
    .split('\n')
    .filter((line) => line.includes('\u001f'))
    .map((line) => {
      const parts = line.split('\u001f').map((part) => part.trim());
      const [id = '', state = '', reason = '', nodes = '', name = '', comment = ''] = parts;
      const [partition = '', account = '', restarts = '0'] = parts.slice(COLUMNS.length);
      const more = { partition, account, restarts: Number(restarts) };
      return { id, state, reason, nodes, name, comment, ...more };
    });
}

type NodeVerbs = Pick<
  Slurm,
  | 'killSlurmd'
  | 'crashNode'
  | 'startSlurmd'
  | 'downNode'
  | 'resumeNode'
  | 'stopController'
  | 'startController'
>;

function nodeVerbs(daemons: Daemons, { ask, run, nodeState, env }: Commands): NodeVerbs {
  const update = (node: string, ...what: string[]): Promise<string> =>
    ask('scontrol', 'update', `nodename=${node}`, ...what);
  const isUsable = async (node: string): Promise<boolean> =>
    /^(idle|mixed|allocated)$/.test(await nodeState(node));
  const killSlurmd = (node: string): Promise<void> => daemons.stop(node, 'SIGKILL');
  return {
    killSlurmd,
    async crashNode(node) {
      await killSlurmd(node);
      for (const pid of processesOn(node, env()['SLURM_CONF'] ?? '')) killPid(pid, 'SIGKILL');
    },
    async startSlurmd(node) {
      daemons.start(node);
      await until(`node ${node} is up`, () => isUsable(node));
    },
    downNode: async (node) => void (await update(node, 'state=down', 'reason=test')),
    resumeNode: async (node) =>
      void (await until(`node ${node} is up`, async () => {
        if (await isUsable(node)) return true;
        // Refused while what ran there is still being ended.
        await update(node, 'state=resume');
        return false;
      })),
    stopController: () => daemons.stop('slurmctld'),
    async startController() {
      daemons.start('slurmctld');
      await until('slurmctld answers', async () =>
        (await run(['scontrol', 'ping'])).stdout.includes('is UP'),
      );
    },
  };
}

/** Debian has the daemons where only root's path looks. */
function systemPath(): string {
  return `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`;
}
