/** Cgroups, version 2 or 1: limits of an attempt, who is in it, and whether memory ran out. */
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  cgroupFolder,
  readCgroupMounts,
  readOwnCgroups,
  type CgroupMount,
} from '../devices/cgroupFolders.ts';
import { errorCode } from './folder.ts';
import { groupUse, readLines } from './groupUse.ts';
import type { Use } from './use.ts';
import type { Log } from '../../lib/log.ts';

const LIMIT_KINDS = ['cgroup2', 'cgroup1', 'rlimit'] as const;
/** How limits are enforced on this machine; an attribute of the worker. */
export type LimitKind = (typeof LIMIT_KINDS)[number];

interface CgroupLimits {
  cpuMillis: number;
  /** 0 means no limit. */
  memoryBytes: number;
  pids: number;
}

export interface CgroupHost {
  kind: Exclude<LimitKind, 'rlimit'>;
  /** Folders of a new group: one with version 2, one per controller with version 1. */
  create(name: string): string[];
  limit(directories: string[], limits: CgroupLimits): void;
  members(directories: string[]): number[];
  /** How many of its processes the kernel killed for want of memory. */
  oomKills(directories: string[]): number;
  /** The most memory it had at once; undefined where the kernel does not tell. */
  peakBytes(directories: string[]): number | undefined;
  /** What it has used and uses now; undefined where the kernel does not tell. */
  use(directories: string[]): Partial<Use>;
  /** False while processes are still leaving it. */
  remove(directories: string[]): boolean;
  /** Puts the agent where busy tasks cannot keep it from the CPU; throws where that is refused. */
  favourAgent(pid: number): void;
}

/** Where the agent is, beside its attempts' groups. */
const AGENT_GROUP = 'drover-agent';
/**
 * As much as claims of a hundred cores: it needs little, but at once, also on a machine that was
 * said to have more cores than it has. 10,000 is version 2's highest.
 */
const AGENT_SHARES = { cgroup1: 102_400, cgroup2: 10_000 };

const VERSION_1_CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
const VERSION_2_CONTROLLERS = ['memory', 'pids'] as const;

/** Undefined where groups cannot be made: rlimits must do. Really makes one to find out. */
export function detectCgroups(): CgroupHost | undefined {
  const mounts = readCgroupMounts('/proc');
  const own = readOwnCgroups('/proc');
  const version2 = parentOfVersion2(mounts, own);
  if (version2 !== undefined) return cgroupHost('cgroup2', [version2]);
  const parents: string[] = [];
  for (const controller of VERSION_1_CONTROLLERS) {
    const mount = mounts.find((m) => m.version === 1 && m.controllers.includes(controller));
    const path = own.get(controller);
    if (!mount || path === undefined) return undefined;
    parents.push(withoutAgentGroup(cgroupFolder(mount, path)));
  }
  return parents.every(canCreate) ? cgroupHost('cgroup1', parents) : undefined;
}

export function cgroupHost(kind: CgroupHost['kind'], parents: string[]): CgroupHost {
  return {
    kind,
    create(name) {
      const made: string[] = [];
      try {
        for (const parent of parents) {
          const directory = join(parent, `drover-${name}`);
          mkdirSync(directory);
          made.push(directory);
        }
      } catch (error) {
        removeAll(made);
        throw error;
      }
      return made;
    },
    limit: kind === 'cgroup2' ? limitVersion2 : limitVersion1,
    members: (directories) => [...new Set(directories.flatMap(membersBelow))],
    oomKills: (directories) => Math.max(0, ...directories.map(oomKillsOf)),
    peakBytes: (directories) => peakOf(directories[0]),
    use: groupUse,
    remove: removeAll,
    favourAgent: (pid) => favour(kind, parents.at(-1)!, pid),
  };
}

function favour(kind: CgroupHost['kind'], parent: string, pid: number): void {
  const file = kind === 'cgroup1' ? 'cpu.shares' : 'cpu.weight';
  const group = join(parent, AGENT_GROUP);
  mkdirSync(group, { recursive: true });
  if (existsSync(join(group, file))) write(group, file, AGENT_SHARES[kind]);
  write(group, 'cgroup.procs', pid);
}

/** A process that was favoured before makes its attempts' groups where it did then. */
function withoutAgentGroup(folder: string): string {
  return basename(folder) === AGENT_GROUP ? dirname(folder) : folder;
}

/**
 * CPU is a weight, not a quota: claims add up to no more than the machine, so everybody gets what
 * they asked for when it is busy, and nobody is throttled while cores stand idle.
 */
function limitVersion1(directories: string[], limits: CgroupLimits): void {
  const [memory, pids, cpu] = directories as [string, string, string];
  write(cpu, 'cpu.shares', Math.max(2, Math.round((limits.cpuMillis * 1024) / 1000)));
  write(pids, 'pids.max', limits.pids);
  if (limits.memoryBytes === 0) return;
  write(memory, 'memory.limit_in_bytes', limits.memoryBytes);
  // Only where the kernel accounts for swap.
  if (existsSync(join(memory, 'memory.memsw.limit_in_bytes'))) {
    write(memory, 'memory.memsw.limit_in_bytes', limits.memoryBytes);
  }
}

function limitVersion2(directories: string[], limits: CgroupLimits): void {
  const directory = directories[0]!;
  if (existsSync(join(directory, 'cpu.weight'))) {
    const weight = Math.round(limits.cpuMillis / 10);
    write(directory, 'cpu.weight', Math.min(10_000, Math.max(1, weight)));
  }
  write(directory, 'pids.max', limits.pids);
  if (limits.memoryBytes === 0) return;
  write(directory, 'memory.max', limits.memoryBytes);
  if (existsSync(join(directory, 'memory.swap.max'))) write(directory, 'memory.swap.max', 0);
  // Half a training run is worth nothing: all of it ends together.
  if (existsSync(join(directory, 'memory.oom.group'))) write(directory, 'memory.oom.group', 1);
}

function write(directory: string, file: string, value: number): void {
  writeFileSync(join(directory, file), String(value));
}

function membersBelow(directory: string): number[] {
  const own = readLines(join(directory, 'cgroup.procs')).map(Number);
  return own.concat(groupsBelow(directory).flatMap(membersBelow));
}

/** A task may have made groups of its own inside. */
function groupsBelow(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(directory, entry.name));
}

function oomKillsOf(directory: string): number {
  for (const file of ['memory.events', 'memory.oom_control']) {
    const line = readLines(join(directory, file)).find((text) => text.startsWith('oom_kill '));
    if (line) return Number(line.split(' ')[1]);
  }
  return 0;
}

/** Version 2 has it from Linux 5.19 on. */
function peakOf(memory: string | undefined): number | undefined {
  if (memory === undefined) return undefined;
  for (const file of ['memory.peak', 'memory.max_usage_in_bytes']) {
    const bytes = Number(readLines(join(memory, file))[0]);
    if (bytes > 0) return bytes;
  }
  return undefined;
}

function removeAll(directories: string[]): boolean {
  let gone = true;
  for (const directory of directories) {
    gone = removeAll(groupsBelow(directory)) && gone;
    try {
      rmdirSync(directory);
    } catch (error) {
      if (errorCode(error) === 'EBUSY') gone = false;
      else if (errorCode(error) !== 'ENOENT') throw error;
    }
  }
  return gone;
}

function canCreate(parent: string): boolean {
  const probe = join(parent, `drover-probe-${process.pid}`);
  try {
    mkdirSync(probe);
    rmdirSync(probe);
    return true;
  } catch {
    // Read-only, not ours or not mounted: all mean the same.
    return false;
  }
}

/**
 * Where version 2 lets us make groups with limits: inside our own group, or beside it where a
 * service manager gave us a subgroup of a delegated one. A group that has processes cannot hand
 * controllers down, so an agent that is alone in its group first moves into a leaf.
 */
function parentOfVersion2(mounts: CgroupMount[], own: Map<string, string>): string | undefined {
  const mount = mounts.find((m) => m.version === 2);
  const path = own.get('');
  if (!mount || path === undefined) return undefined;
  const group = withoutAgentGroup(cgroupFolder(mount, path));
  if (canCreate(group) && handDown(group)) return group;
  const parent = join(group, '..');
  if (group === mount.at || !canCreate(parent) || !handsDown(parent)) return undefined;
  return parent;
}

function handsDown(group: string): boolean {
  const enabled = (readLines(join(group, 'cgroup.subtree_control'))[0] ?? '').split(' ');
  return VERSION_2_CONTROLLERS.every((controller) => enabled.includes(controller));
}

function handDown(group: string): boolean {
  const available = (readLines(join(group, 'cgroup.controllers'))[0] ?? '').split(' ');
  if (!VERSION_2_CONTROLLERS.every((controller) => available.includes(controller))) return false;
  const wanted = [...VERSION_2_CONTROLLERS, 'cpu'].filter((name) => available.includes(name));
  const enable = (): boolean => {
    try {
      writeFileSync(
        join(group, 'cgroup.subtree_control'),
        wanted.map((name) => `+${name}`).join(' '),
      );
      return true;
    } catch {
      // Refused while the group has processes, or not ours.
      return false;
    }
  };
  if (enable()) return true;
  const inside = readLines(join(group, 'cgroup.procs'));
  if (inside.length !== 1 || inside[0] !== String(process.pid)) return false;
  try {
    const leaf = join(group, AGENT_GROUP);
    mkdirSync(leaf, { recursive: true });
    writeFileSync(join(leaf, 'cgroup.procs'), String(process.pid));
  } catch {
    return false;
  }
  return enable();
}

export function joinCgroups(paths: readonly string[], pid: number): void {
  try {
    for (const path of paths) writeFileSync(join(path, 'cgroup.procs'), String(pid));
  } catch (error) {
    // A short command may be over before it could be moved; its output and code still count.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Without it work goes on, only later. */
export function favourAgent(cgroups: CgroupHost | undefined, log: Log): void {
  try {
    cgroups?.favourAgent(process.pid);
  } catch (error) {
    log.warn({ error }, 'busy tasks may delay this agent: its cgroup could not be set');
  }
}
