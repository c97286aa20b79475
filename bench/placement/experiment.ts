/** One run of the published experiment: tasks arrive one by one, nothing departs. */
import { arrivals, capacityOf, demandOf, type TraceNode, type TraceTask } from './traces.ts';

export interface Policy {
  /** Places and books it; false: it fits nowhere and is skipped. */
  place(task: TraceTask): boolean;
}

export interface Run {
  /** Percent of all device thousandths in use when this much demand had arrived. */
  at100: number;
  at130: number;
  decisions: number;
  seconds: number;
}

export function runOnce(
  nodes: readonly TraceNode[],
  tasks: readonly TraceTask[],
  seed: number,
  policyOf: (nodes: readonly TraceNode[], tasks: readonly TraceTask[]) => Policy,
): Run {
  const capacity = capacityOf(nodes);
  const stream = arrivals(tasks, capacity, seed);
  const policy = policyOf(nodes, tasks);
  let arrived = 0;
  let placed = 0;
  let at100 = Number.NaN;
  const start = process.hrtime.bigint();
  for (const task of stream) {
    arrived += demandOf(task);
    if (policy.place(task)) placed += demandOf(task);
    if (Number.isNaN(at100) && arrived >= capacity) at100 = (100 * placed) / capacity;
  }
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  return { at100, at130: (100 * placed) / capacity, decisions: stream.length, seconds };
}
