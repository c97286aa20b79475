/**
 * Fragmentation gradient descent, from the idea of "Beware of Fragmentation" (Weng et al., ATC
 * 2023): a task goes where the part of the free devices that a random task of the workload cannot
 * use grows least. As in the authors' simulator the score is cut to whole percents of a sigmoid;
 * among equals the node with the fewest idle devices is taken. The workload is the list itself.
 */
import type { Policy } from './experiment.ts';
import { nodePolicy, WHOLE, type NodeState } from './nodes.ts';
import type { TraceNode, TraceTask } from './traces.ts';

interface Target {
  cpuMillis: number;
  memoryMiB: number;
  devices: number;
  share: number;
  models: string[];
  weight: number;
}

/** Far less than one percent of the sigmoid: it only decides between equals. */
const TIE = 1e-6;

export function fgd(nodes: readonly TraceNode[], tasks: readonly TraceTask[]): Policy {
  const targets = targetsOf(tasks);
  const known = new WeakMap<NodeState, { version: number; value: number }>();
  const current = (state: NodeState): number => {
    const cached = known.get(state);
    if (cached?.version === state.version) return cached.value;
    const value = fragmentation(state, targets);
    known.set(state, { version: state.version, value });
    return value;
  };
  return nodePolicy(nodes, (before, after) => {
    const growth = (fragmentation(after, targets) - current(before)) / WHOLE;
    const percents = Math.floor(100 / (1 + Math.exp(growth)));
    const idle = before.devices.filter((free) => free === WHOLE).length;
    return -percents + TIE * idle;
  });
}

/** Expected thousandths that a task of the workload could not use. */
function fragmentation(state: NodeState, targets: Target[]): number {
  const free = state.devices.reduce((sum, each) => sum + each, 0);
  if (free === 0) return 0;
  let sum = 0;
  for (const target of targets) sum += target.weight * unusable(state, target, free);
  return sum;
}

function unusable(state: NodeState, target: Target, free: number): number {
  if (target.cpuMillis > state.cpuFree || target.memoryMiB > state.memoryFree) return free;
  if (target.models.length > 0 && !target.models.includes(state.node.model)) return free;
  let usable = 0;
  let devices = 0;
  for (const each of state.devices) {
    if (each < target.share) continue;
    usable += each;
    devices++;
  }
  return devices >= target.devices ? free - usable : free;
}

/** Tasks without devices see all free ones as fragments whatever is done: they are left out. */
function targetsOf(tasks: readonly TraceTask[]): Target[] {
  const targets = new Map<string, Target>();
  const wanting = tasks.filter(({ devices }) => devices > 0);
  for (const task of wanting) {
    const { cpuMillis, devices, share, models } = task;
    const key = JSON.stringify([cpuMillis, devices, share, models]);
    const target = targets.get(key) ?? { ...task, weight: 0 };
    target.memoryMiB = Math.max(target.memoryMiB, task.memoryMiB);
    target.weight += 1 / wanting.length;
    targets.set(key, target);
  }
  return [...targets.values()];
}
