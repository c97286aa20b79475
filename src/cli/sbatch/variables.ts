/** SLURM_ variables that are known when a job is submitted; batch.sh adds the others. */
import { parseArray } from '../resources.ts';
import type { Layout } from './layout.ts';
import type { Sheet } from './sheet.ts';

export interface SubmittedFrom {
  /** Empty: it is wherever the job starts on its worker. */
  cwd: string;
  user: string;
  host: string;
}

/** As sbatch does, some are only set where their option was given: scripts test for that. */
export function slurmVariables(
  sheet: Sheet,
  layout: Layout,
  name: string,
  from: SubmittedFrom,
): Record<string, string> {
  const { nodes, tasks, tasksPerNode, cpusPerNode, gpusPerNode, memoryMb } = layout;
  const env: Record<string, string> = {
    SLURM_JOB_NAME: name,
    SLURM_SUBMIT_HOST: from.host,
    SLURM_JOB_USER: from.user,
    SLURM_NNODES: String(nodes),
    SLURM_JOB_NUM_NODES: String(nodes),
    SLURM_NTASKS: String(tasks),
    SLURM_NPROCS: String(tasks),
    SLURM_TASKS_PER_NODE: nodes > 1 ? `${tasksPerNode}(x${nodes})` : String(tasksPerNode),
    SLURM_CPUS_ON_NODE: String(cpusPerNode),
    SLURM_JOB_CPUS_PER_NODE: nodes > 1 ? `${cpusPerNode}(x${nodes})` : String(cpusPerNode),
  };
  if (from.cwd !== '') env['SLURM_SUBMIT_DIR'] = from.cwd;
  if (gpusPerNode > 0) env['SLURM_GPUS_ON_NODE'] = String(gpusPerNode);
  const given: [option: string, variable: string, value?: string | undefined][] = [
    ['cpus-per-task', 'SLURM_CPUS_PER_TASK'],
    ['ntasks-per-node', 'SLURM_NTASKS_PER_NODE'],
    ['gpus', 'SLURM_GPUS'],
    ['gpus-per-node', 'SLURM_GPUS_PER_NODE'],
    ['gpus-per-task', 'SLURM_GPUS_PER_TASK', countOf(sheet.take('gpus-per-task'))],
    ['mem', 'SLURM_MEM_PER_NODE', memoryMb === undefined ? undefined : String(memoryMb)],
    ['mem-per-cpu', 'SLURM_MEM_PER_CPU'],
    ['mem-per-gpu', 'SLURM_MEM_PER_GPU'],
  ];
  for (const [option, variable, value] of given) {
    const text = value ?? valueOf(sheet, option);
    if (sheet.has(option) && text !== undefined) env[variable] = text;
  }
  return { ...env, ...arrayVariables(sheet) };
}

/** The options behind these were mapped already, so that taking them again changes nothing. */
function valueOf(sheet: Sheet, option: string): string | undefined {
  return sheet.has(option) ? sheet.take(option) : undefined;
}

function countOf(text: string | undefined): string | undefined {
  return text?.replace(/^.*:/, '');
}

function arrayVariables(sheet: Sheet): Record<string, string> {
  const text = valueOf(sheet, 'array');
  if (text === undefined) return {};
  const { indices } = parseArray(text, sheet.label('array'));
  const step = /-\d+:(\d+)/.exec(text)?.[1] ?? '1';
  return {
    SLURM_ARRAY_TASK_COUNT: String(indices.length),
    SLURM_ARRAY_TASK_MIN: String(indices.reduce((least, index) => Math.min(least, index))),
    SLURM_ARRAY_TASK_MAX: String(indices.reduce((most, index) => Math.max(most, index))),
    SLURM_ARRAY_TASK_STEP: step,
  };
}
