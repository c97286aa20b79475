/** What workers say of their machines. */
import { isComing } from '../core/lifecycle/instance.ts';
import { ENDING, type HealthProblem } from '../model/health.ts';
import type { Worker } from '../model/worker.ts';
import { faultHost } from './hosts.ts';
import type { ReportHealth } from './instanceMutations.ts';
import { DONE, missing, type Result } from './mutations.ts';
import type { State } from './state.ts';

export function reportHealth(state: State, mutation: ReportHealth, nowMs: number): Result {
  const worker = state.workers.get(mutation.worker)?.worker;
  if (!worker) return missing(`worker ${mutation.worker}`);
  const { problems } = mutation;
  if (JSON.stringify(worker.problems) === JSON.stringify(problems)) return DONE;
  const before = new Set(worker.problems.filter(drains).map(({ check }) => check));
  const fresh = problems.filter((problem) => drains(problem) && !before.has(problem.check));
  worker.problems = problems;
  state.touchWorker(worker);
  const evidence = problems.map(({ message }) => message).join('; ');
  for (const { check, message } of fresh) {
    if (check === ENDING) continue;
    const at = { pool: worker.pool, name: worker.host };
    faultHost(state, at, 'health-drain', message, nowMs);
  }
  const kind = problems.some(drains) ? 'worker.unwell' : 'worker.well';
  state.note(nowMs, { kind, tenant: '', worker: worker.id, data: { evidence } });
  return DONE;
}

export function takesWork({ machines }: State, worker: Worker): boolean {
  const { state, draining, problems, instance } = worker;
  if (state !== 'ONLINE' || draining || problems.some(drains)) return false;
  // One of several workers of an instance waits for the others: it came for work that needs all.
  const live = instance && machines.instances.get(instance);
  return !live || !isComing(live.instance.state);
}

function drains({ severity }: HealthProblem): boolean {
  return severity === 'drain';
}
