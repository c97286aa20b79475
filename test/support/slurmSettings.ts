/** The files of a real Slurm in one folder: two nodes of this machine, devices that only count. */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import path from 'node:path';

interface SlurmNode {
  name: string;
  gpuModel: string;
  gpus: number;
}

export const NODES: readonly SlurmNode[] = [
  { name: 'n1', gpuModel: 'a100', gpus: 4 },
  { name: 'n2', gpuModel: 'rtx4090', gpus: 2 },
];

export interface SlurmFiles {
  etc: string;
  conf: string;
  mungeSocket: string;
  mungeKey: string;
  /** Of whoever submits. */
  home: string;
  /** First on everybody's path. */
  bin: string;
}

export interface SlurmConf {
  /** A node that does not answer for this long is down; short, since tests wait for it. */
  slurmdTimeoutS?: number;
  /** With the waits between scheduling rounds that Slurm has where nobody changed them. */
  unhurried?: boolean;
  /** More lines for slurm.conf. */
  settings?: string[];
}

const SLURMD_TIMEOUT_S = 5;

export interface SlurmPorts {
  controller: number;
  /** By the node's name. */
  nodes: Record<string, number>;
}

/**
 * Readable for all users of the machine, as Slurm's commands need it. Partitions: `gpu`
 * (default), `scavenge` (its jobs are requeued when gpu wants the nodes), `closed` (takes jobs
 * and starts none). The account `nobody-pays` is refused, as where accounts are enforced.
 */
export function writeSlurmFiles(root: string, ports: SlurmPorts, options: SlurmConf): SlurmFiles {
  const at = (...parts: string[]): string => path.join(root, ...parts);
  chmodSync(root, 0o755);
  const folders = [
    'etc',
    'home',
    'bin',
    'state',
    'log',
    'dev',
    'munge',
    ...NODES.map(({ name }) => `spool/${name}`),
  ];
  for (const name of folders) mkdirSync(at(name), { recursive: true });
  writeFileSync(at('munge', 'key'), randomBytes(128), { mode: 0o400 });
  const files: SlurmFiles = {
    etc: at('etc'),
    conf: at('etc', 'slurm.conf'),
    mungeSocket: at('munge', 'socket'),
    mungeKey: at('munge', 'key'),
    home: at('home'),
    bin: at('bin'),
  };
  writeFileSync(files.conf, confOf(root, files, ports, options));
  writeFileSync(at('etc', 'gres.conf'), devicesOf(root));
  writeFileSync(at('etc', 'job_submit.lua'), ACCOUNTS);
  writeFileSync(at('bin', 'nvidia-smi'), nvidiaSmi(), { mode: 0o755 });
  return files;
}

function confOf(root: string, files: SlurmFiles, ports: SlurmPorts, options: SlurmConf): string {
  const host = hostname().split('.', 1)[0] ?? 'localhost';
  const user = userInfo().username;
  const nodes = NODES.map(
    ({ name, gpuModel, gpus }) =>
      `NodeName=${name} NodeHostname=${host} NodeAddr=127.0.0.1 Port=${ports.nodes[name]} ` +
      `CPUs=16 RealMemory=16000 Gres=gpu:${gpuModel}:${gpus} State=UNKNOWN`,
  );
  const names = NODES.map(({ name }) => name).join(',');
  return [
    'ClusterName=lab',
    `SlurmctldHost=${host}(127.0.0.1)`,
    `SlurmctldPort=${ports.controller}`,
    `SlurmUser=${user}`,
    `SlurmdUser=${user}`,
    // A requeued job waits until its credentials have run out, otherwise two minutes.
    `AuthInfo=socket=${files.mungeSocket},cred_expire=5`,
    `StateSaveLocation=${root}/state`,
    `SlurmdSpoolDir=${root}/spool/%n`,
    `SlurmctldPidFile=${root}/slurmctld.pid`,
    `SlurmdPidFile=${root}/slurmd-%n.pid`,
    // As root they also write to syslog where this is not off.
    'SlurmctldSyslogDebug=quiet',
    'SlurmdSyslogDebug=quiet',
    'ProctrackType=proctrack/linuxproc',
    'TaskPlugin=task/none',
    'MpiDefault=none',
    'JobAcctGatherType=jobacct_gather/none',
    'AccountingStorageType=accounting_storage/none',
    'JobCompType=jobcomp/filetxt',
    `JobCompLoc=${root}/log/jobcomp.log`,
    'JobSubmitPlugins=lua',
    'SelectType=select/cons_tres',
    'SelectTypeParameters=CR_Core_Memory',
    'DefMemPerCPU=256',
    ...(options.unhurried ? [] : [`SchedulerParameters=${SCHEDULER}`]),
    'PreemptType=preempt/partition_prio',
    'PreemptMode=REQUEUE',
    'ReturnToService=2',
    // Nodes may have more processors and memory than this machine.
    'SlurmdParameters=config_overrides',
    `SlurmdTimeout=${options.slurmdTimeoutS ?? SLURMD_TIMEOUT_S}`,
    'KillWait=3',
    'MinJobAge=300',
    'MaxJobCount=20000',
    'MaxArraySize=10001',
    'GresTypes=gpu',
    ...(options.settings ?? []),
    ...nodes,
    `PartitionName=gpu Nodes=${names} Default=YES MaxTime=INFINITE PriorityTier=10 PreemptMode=off`,
    `PartitionName=scavenge Nodes=${names} MaxTime=INFINITE PriorityTier=1`,
    `PartitionName=closed Nodes=${names} MaxTime=INFINITE State=DOWN`,
    '',
  ].join('\n');
}

/** Without the waits that spare large sites' controllers. */
const SCHEDULER =
  'batch_sched_delay=0,sched_min_interval=100000,default_queue_depth=1000,bf_interval=1';

/** Slurm wants character devices of its own for each: names for /dev/null do. */
function devicesOf(root: string): string {
  let next = 0;
  const lines = NODES.map(({ name, gpuModel, gpus }) => {
    const first = next;
    for (; next < first + gpus; next += 1) symlinkSync('/dev/null', `${root}/dev/gpu${next}`);
    return `NodeName=${name} Name=gpu Type=${gpuModel} File=${root}/dev/gpu[${first}-${next - 1}]`;
  });
  return ['AutoDetect=off', ...lines, ''].join('\n');
}

const ACCOUNTS = `
function slurm_job_submit(job, partitions, uid)
  if job.account == "nobody-pays" then return slurm.ESLURM_INVALID_ACCOUNT end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end
return slurm.SUCCESS
`;

/** Answers what agents ask of the driver, for the node it is run on; nothing elsewhere. */
function nvidiaSmi(): string {
  const cases = NODES.map(
    ({ name, gpuModel, gpus }) => `  ${name}) model=${gpuModel} gpus=${gpus} ;;`,
  );
  return [
    '#!/bin/bash',
    '# Stands for the driver of a node whose devices only count.',
    'gpus=0',
    'case "${SLURMD_NODENAME:-}" in',
    ...cases,
    'esac',
    'for word in "$@"; do case "$word" in --query-gpu=*) fields=${word#*=} ;; esac; done',
    '[ -n "${fields:-}" ] || exit 2',
    'for ((index = 0; index < gpus; index++)); do',
    '  row=()',
    '  for field in ${fields//,/ }; do',
    '    case "$field" in',
    '      index) row+=("$index") ;;',
    '      name) row+=("NVIDIA $model") ;;',
    '      uuid) row+=("GPU-$SLURMD_NODENAME-$index") ;;',
    '      pci.bus_id) row+=("00000000:0$index:00.0") ;;',
    '      memory.total) row+=(40960) ;;',
    '      memory.used | utilization.gpu) row+=(0) ;;',
    '      *) row+=("[N/A]") ;;',
    '    esac',
    '  done',
    '  (IFS=,; echo "${row[*]}" | sed "s/,/, /g")',
    'done',
    '',
  ].join('\n');
}
