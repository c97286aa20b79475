/** Nodes, tasks, cores, GPUs and memory: what each node of the job must have. */
import { UsageError, wholeNumber } from '../args.ts';
import { megabytes, type Sheet } from './sheet.ts';

export interface Layout {
  nodes: number;
  tasks: number;
  tasksPerNode: number;
  cpusPerTask: number;
  cpusPerNode: number;
  /** `2`, `a100:2`, or undefined. */
  gpus: string | undefined;
  gpusPerNode: number;
  memoryMb: number | undefined;
}

interface Gpus {
  model: string;
  count: number;
}

export function readLayout(sheet: Sheet): Layout {
  const shape = readShape(sheet);
  const { nodes, tasksPerNode } = shape;
  const gpus = readGpus(sheet, nodes, tasksPerNode);
  const count = gpus?.count ?? 0;
  const cpusPerTask = sheet.number('cpus-per-task') ?? 1;
  const perGpu = sheet.number('cpus-per-gpu') ?? 0;
  const least = sheet.number('mincpus') ?? 0;
  const cpusPerNode = Math.max(tasksPerNode * cpusPerTask, perGpu * count, least);
  return {
    ...shape,
    cpusPerTask,
    cpusPerNode,
    gpus: gpus && (gpus.model ? `${gpus.model}:${count}` : String(count)),
    gpusPerNode: count,
    memoryMb: readMemory(sheet, cpusPerNode, count),
  };
}

function readShape(sheet: Sheet): Pick<Layout, 'nodes' | 'tasks' | 'tasksPerNode'> {
  const perNode = sheet.number('ntasks-per-node');
  const asked = sheet.number('ntasks');
  const perGpu = sheet.has('ntasks-per-gpu');
  if (perGpu) sheet.leave('ntasks-per-gpu', 'say --ntasks or --ntasks-per-node');
  const fromTasks = perNode && asked ? Math.ceil(asked / perNode) : 1;
  const nodes = readNodes(sheet) ?? fromTasks;
  const tasks = asked ?? nodes * (perNode ?? 1);
  if (tasks < nodes) {
    // As sbatch does: no node without a task.
    return { nodes: tasks, tasks, tasksPerNode: 1 };
  }
  return { nodes, tasks, tasksPerNode: Math.max(perNode ?? 0, Math.ceil(tasks / nodes)) };
}

/** `4`, or `2-4`: as many as are needed at least. */
function readNodes(sheet: Sheet): number | undefined {
  const text = sheet.take('nodes');
  if (text === undefined) return undefined;
  const [first = '', last] = text.split('-');
  const nodes = wholeNumber(first, sheet.label('nodes'), 1);
  if (last !== undefined && wholeNumber(last, sheet.label('nodes'), nodes) !== nodes) {
    sheet.leave('nodes', `a job has one size: ${nodes} it is`);
  }
  return nodes;
}

function readGpus(sheet: Sheet, nodes: number, tasksPerNode: number): Gpus | undefined {
  const all = gpusOf(sheet, 'gpus');
  const total = all && { ...all, count: Math.ceil(all.count / nodes) };
  const task = gpusOf(sheet, 'gpus-per-task');
  const perTask = task && { ...task, count: task.count * tasksPerNode };
  const perNode = gpusOf(sheet, 'gpus-per-node');
  const gres = readGres(sheet);
  const found = perNode ?? gres ?? perTask ?? total;
  if (found === total && all && all.count % nodes !== 0) {
    sheet.leave('gpus', `${all.count} on ${nodes} nodes: each gets ${total!.count}`);
  }
  return found && found.count > 0 ? found : undefined;
}

/** `2`, `a100:2` or `a100`; a list of types has no equivalent. */
function gpusOf(sheet: Sheet, name: string): Gpus | undefined {
  const text = sheet.take(name);
  if (text === undefined) return undefined;
  const [first = '', ...more] = text.split(',');
  if (more.length > 0) sheet.leave(name, 'one type of GPU per job', more.join(','));
  return parseGpuCount(first, sheet.label(name));
}

function parseGpuCount(text: string, what: string): Gpus {
  const parts = text.replace(/\(.*\)$/, '').split(':');
  if (parts.length > 2 || parts[0] === '') {
    const hint = 'write 2, a100:2 or gpu:a100:2';
    throw new UsageError(`${what} ${JSON.stringify(text)} is not a number of GPUs`, hint);
  }
  if (parts.length === 2) return { model: parts[0]!, count: wholeNumber(parts[1]!, what) };
  if (/^\d/.test(text)) return { model: '', count: wholeNumber(parts[0]!, what) };
  return { model: parts[0]!, count: 1 };
}

/** gpu, gpu:2, gpu:a100, gpu:a100:2, also after `gres:`; other kinds are left out. */
function readGres(sheet: Sheet): Gpus | undefined {
  const text = sheet.take('gres');
  if (text === undefined || text.toUpperCase() === 'NONE') return undefined;
  let found: Gpus | undefined;
  for (const entry of text.split(',')) {
    const [kind = '', ...rest] = entry.replace(/^gres[:/]/, '').split(':');
    if (kind !== 'gpu' || found) {
      const why = kind === 'gpu' ? 'one type of GPU per job' : 'only gpu is known here';
      sheet.leave('gres', why, entry);
    } else {
      found = parseGpuCount(rest.join(':') || '1', sheet.label('gres'));
    }
  }
  return found;
}

function readMemory(sheet: Sheet, cpus: number, gpus: number): number | undefined {
  const amount = (name: string): number | undefined => {
    const text = sheet.take(name);
    return text === undefined ? undefined : megabytes(text, sheet.label(name));
  };
  const perNode = amount('mem');
  const perCpu = amount('mem-per-cpu');
  const perGpu = amount('mem-per-gpu');
  if (perNode === 0) {
    sheet.leave('mem', "all of a node's memory has no equivalent: no limit is set");
    return undefined;
  }
  if (perNode !== undefined) return perNode;
  if (perCpu !== undefined) return perCpu * cpus;
  return perGpu === undefined || gpus === 0 ? undefined : perGpu * gpus;
}
