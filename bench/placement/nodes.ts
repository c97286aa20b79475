/** A plain fleet for the policies that Drover is measured beside: a function scores each node. */
import type { Policy } from './experiment.ts';
import type { TraceNode, TraceTask } from './traces.ts';

export interface NodeState {
  readonly node: TraceNode;
  cpuFree: number;
  memoryFree: number;
  /** Thousandths free of each device. */
  devices: number[];
  /** Rises with each change: what was scored before it no longer holds. */
  version: number;
}

/** Less is better. `after` is the node as it would be. */
export type NodeScore = (before: NodeState, after: NodeState, task: TraceTask) => number;

interface Option {
  score: number;
  /** For a share: which device. */
  device: number;
  version: number;
}

export const WHOLE = 1000;

/** Scores of nodes that did not change since the same task was last asked about are kept. */
export function nodePolicy(nodes: readonly TraceNode[], score: NodeScore): Policy {
  const states = nodes.map(stateOf);
  const known = new Map<TraceTask, Option[]>();
  return {
    place(task) {
      let options = known.get(task);
      if (!options) known.set(task, (options = []));
      let best: Option | null = null;
      let where: NodeState | null = null;
      for (const [at, state] of states.entries()) {
        let option = options[at];
        if (option?.version !== state.version) {
          option = options[at] = bestOption(state, task, score);
        }
        if (option.score >= (best?.score ?? Number.POSITIVE_INFINITY)) continue;
        best = option;
        where = state;
      }
      if (!best || !where) return false;
      take(where, task, best.device);
      where.version++;
      return true;
    },
  };
}

function stateOf(node: TraceNode): NodeState {
  return {
    node,
    cpuFree: node.cpuMillis,
    memoryFree: node.memoryMiB,
    devices: Array.from({ length: node.devices }, () => WHOLE),
    version: 0,
  };
}

function bestOption(state: NodeState, task: TraceTask, score: NodeScore): Option {
  const best = { score: Number.POSITIVE_INFINITY, device: -1, version: state.version };
  if (!fits(state, task)) return best;
  const seen = new Set<number>();
  for (const device of devicesFor(state, task)) {
    const free = state.devices[device] ?? 0;
    if (seen.has(free)) continue;
    seen.add(free);
    const after = { ...state, devices: [...state.devices] };
    take(after, task, device);
    const value = score(state, after, task);
    if (value < best.score) Object.assign(best, { score: value, device });
  }
  return best;
}

function fits(state: NodeState, task: TraceTask): boolean {
  if (task.cpuMillis > state.cpuFree || task.memoryMiB > state.memoryFree) return false;
  if (task.devices === 0) return true;
  if (task.models.length > 0 && !task.models.includes(state.node.model)) return false;
  return state.devices.filter((free) => free >= task.share).length >= task.devices;
}

/** Fullest first; whole devices, and no device, are one option. */
function devicesFor({ devices }: NodeState, { devices: count, share }: TraceTask): number[] {
  if (count === 0 || share === WHOLE) return [-1];
  const free = (at: number): number => devices[at] ?? 0;
  return [...devices.keys()]
    .filter((at) => free(at) >= share)
    .toSorted((a, b) => free(a) - free(b));
}

function take(state: NodeState, task: TraceTask, device: number): void {
  state.cpuFree -= task.cpuMillis;
  state.memoryFree -= task.memoryMiB;
  if (device >= 0) {
    state.devices[device]! -= task.share;
    return;
  }
  let left = task.devices;
  for (const [at, free] of state.devices.entries()) {
    if (left === 0) return;
    if (free !== WHOLE) continue;
    state.devices[at] = 0;
    left--;
  }
}
