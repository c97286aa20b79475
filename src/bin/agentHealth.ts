/** How an agent looks after its machine, built from its settings. */
import { join } from 'node:path';
import { createClockCheck } from '../agent/health/clock.ts';
import type { Check } from '../agent/health/check.ts';
import { createRoomCheck, createWriteCheck } from '../agent/health/disk.ts';
import { createGpuCheck } from '../agent/health/gpus.ts';
import { Health } from '../agent/health/health.ts';
import { openKernelLog } from '../agent/health/kernelLog.ts';
import { createMemoryCheck } from '../agent/health/memory.ts';
import { createSmi } from '../agent/health/nvidiaSmi.ts';
import { createHealthReport } from '../agent/health/report.ts';
import { createCommandCheck } from '../agent/health/siteCommand.ts';
import { createXidCheck } from '../agent/health/xids.ts';
import type { Report } from '../agent/reports.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Settings } from '../model/settings.ts';
import type { JoinRequest } from '../protocol/agent.ts';

interface HealthParts {
  settings: Settings['agent'];
  /** What is offered at the join, and what of the machine could not be read for it. */
  resources: JoinRequest['resources'];
  problems: readonly string[];
  clock: Clock;
  log: Log;
}

export interface AgentHealth {
  health: Health;
  report: Report;
  /** Told of the server's time with every reply. */
  heardDate: (header: string) => void;
}

/** Touched by whoever repaired a device without a boot, see docs/health.md. */
const CLEARED_FILE = 'health-cleared';
/** Nothing of an agent's environment that could be a secret. */
const PASSED_ON = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'LANG',
  'LC_ALL',
  'TMPDIR',
  'LD_LIBRARY_PATH',
];

export function startHealth({
  settings,
  resources,
  problems,
  clock,
  log,
}: HealthParts): AgentHealth {
  const { dataDir, cache, health: wanted } = settings;
  const env = environment();
  const time = createClockCheck(clock);
  const checks: Check[] = [
    ...gpuChecks({ settings, resources, problems, clock, log }, env),
    time.check,
    createRoomCheck([dataDir, cache.folder], wanted.minFreeBytes),
    createWriteCheck(dataDir),
    createMemoryCheck(),
  ];
  if (wanted.command !== '') {
    const { command, commandLimitMs: limitMs } = wanted;
    checks.push(createCommandCheck({ command, limitMs, env, clock }));
  }
  const { warnOnly, periodMs } = wanted;
  const health = new Health({ checks, warnOnly, periodMs, clock, log });
  void health.start();
  return { health, report: createHealthReport(health), heardDate: time.heard };
}

/** In this order: where the devices are is known before the kernel's words on them are read. */
function gpuChecks(parts: HealthParts, env: Record<string, string>): Check[] {
  const { settings, resources, problems, clock, log } = parts;
  const checks: Check[] = problems.length > 0 ? [undetected(problems)] : [];
  const gpus = resources.devices.filter(({ kind }) => kind === 'gpu').map(({ index }) => index);
  if (gpus.length === 0) return checks;
  const { check, known } = createGpuCheck(gpus, createSmi(env, clock));
  const xid = createXidCheck({
    kernelLog: openKernelLog({ env, clock }),
    gpus: known,
    clearedFile: join(settings.dataDir, CLEARED_FILE),
    ...{ clock, log },
  });
  return [...checks, check, xid];
}

/** Devices that could not be asked for are not offered: then this machine has fewer than it has. */
function undetected(problems: readonly string[]): Check {
  const found = problems.map((problem) => ({
    ...{ check: 'devices' as const, key: problem, severity: 'warn' as const },
    ...{ message: `at the agent's start: ${problem}`, blames: 'nobody' as const },
  }));
  return { name: 'devices', around: 'none', look: async () => found };
}

function environment(): Record<string, string> {
  const values = PASSED_ON.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(values.filter((one): one is [string, string] => one[1] !== undefined));
}
