/** What is asked of sbatch for a batch. On the command line, so that it overrules the template. */
import type { LaunchBatch } from '../contract.ts';
import type { ResourceRequest } from '../../model/resources.ts';
import type { SlurmPoolSettings } from '../../model/slurmSettings.ts';

const MEBIBYTE = 1024 ** 2;
/** Of --signal. */
const LONGEST_NOTICE_SECONDS = 65_535;

export interface Asked {
  batch: LaunchBatch;
  settings: SlurmPoolSettings;
  pool: string;
  jobName: string;
  /** Who pays; empty: the site's default. */
  account: string;
  /** 0: as long as the partition gives. */
  timeMs: number;
  /** Nodes of the site; others it would not take. */
  avoid: readonly string[];
  folder: string;
}

export function sbatchOptions(asked: Asked): string[] {
  const { batch, settings, pool, jobName, account, timeMs, avoid, folder } = asked;
  const several = batch.intents.length > 1;
  const output = `${folder}/%x-${several ? '%A_%a' : '%j'}.out`;
  return [
    '--parsable',
    `--job-name=${jobName}`,
    `--comment=${comment(`drover pool=${pool} batch=${batch.id} for ${batch.name}`)}`,
    `--output=${output}`,
    '--open-mode=append',
    ...(several ? [`--array=0-${batch.intents.length - 1}`] : []),
    `--nodes=${batch.workers}`,
    '--ntasks-per-node=1',
    ...named('partition', settings.partition),
    ...named('account', account),
    ...named('qos', settings.qos),
    ...named('constraint', settings.constraint),
    ...named('reservation', settings.reservation),
    ...(batch.resources ? sized(batch.resources, settings) : []),
    ...(timeMs > 0 ? [`--time=${slurmTime(timeMs)}`] : []),
    ...notice(batch.noticeMs, timeMs),
    ...(avoid.length > 0 ? [`--exclude=${avoid.join(',')}`] : []),
    ...settings.options,
  ];
}

function named(option: string, value: string): string[] {
  return value === '' ? [] : [`--${option}=${value}`];
}

function sized(resources: ResourceRequest, { gres }: SlurmPoolSettings): string[] {
  const { cpuMillis, memoryBytes, device } = resources;
  const cpus = Math.max(1, Math.ceil(cpuMillis / 1000));
  const options = [`--cpus-per-task=${cpus}`];
  if (memoryBytes > 0) options.push(`--mem=${Math.ceil(memoryBytes / MEBIBYTE)}M`);
  if (device && device.count > 0) {
    const kind = [gres.name, gres.type].filter(Boolean).join(':');
    options.push(`--gres=${kind}:${device.count}`);
  }
  return options;
}

/** To the script, which must not end of it: `B:`. Not longer than the job itself. */
function notice(noticeMs: number, timeMs: number): string[] {
  const most = timeMs > 0 ? Math.floor(timeMs / 2000) : LONGEST_NOTICE_SECONDS;
  const seconds = Math.min(Math.ceil(noticeMs / 1000), LONGEST_NOTICE_SECONDS, most);
  return seconds > 0 ? [`--signal=B:USR1@${seconds}`] : [];
}

/** `days-hours:minutes:seconds`. Slurm counts in minutes and rounds up, so this rounds down. */
export function slurmTime(timeMs: number): string {
  const minutes = Math.max(1, Math.floor(timeMs / 60_000));
  const [days, hours] = [Math.floor(minutes / 1440), Math.floor(minutes / 60) % 24];
  const two = (n: number): string => String(n).padStart(2, '0');
  return `${days}-${two(hours)}:${two(minutes % 60)}:00`;
}

function comment(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ').slice(0, 500);
}
