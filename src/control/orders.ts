/** What an agent is told to run: the job's command with Drover's variables around it. */
import type { Attempt } from '../model/attempt.ts';
import type { Task } from '../model/task.ts';
import type { AttemptOrder } from '../protocol/agent.ts';
import type { LiveJob } from '../state/live.ts';
import type { State } from '../state/state.ts';

export function orderOf(state: State, attempt: Attempt, leaseMs: number): AttemptOrder | null {
  const found = state.task(attempt.task);
  const claim = state.claims.get(attempt.uid);
  const worker = state.workers.get(attempt.worker)?.worker;
  if (!found || !claim || !worker) return null;
  const { spec } = found.live.job;
  return {
    uid: attempt.uid,
    job: attempt.job,
    task: attempt.task,
    index: found.task.index,
    n: attempt.n,
    command: spec.command,
    env: { ...spec.env, ...variables(state, found.live, found.task, attempt, claim.ports) },
    workdir: spec.workdir,
    cpuMillis: claim.cpuMillis,
    memoryBytes: claim.memoryBytes,
    devices: claim.devices.map((index) => ({
      index,
      kind: worker.resources.devices.find((device) => device.index === index)?.kind ?? 'gpu',
    })),
    share: claim.share,
    ports: claim.ports,
    graceMs: spec.graceMs,
    attemptLeaseMs: leaseMs,
  };
}

function variables(
  state: State,
  live: LiveJob,
  task: Task,
  attempt: Attempt,
  ports: number[],
): Record<string, string> {
  const env: Record<string, string> = {
    DROVER_CLUSTER_ID: state.clusterId,
    DROVER_JOB_ID: live.job.id,
    DROVER_JOB_NAME: live.job.spec.name,
    DROVER_TASK_ID: task.id,
    DROVER_TASK_INDEX: String(task.index),
    DROVER_ATTEMPT: String(attempt.n),
    DROVER_ATTEMPT_UID: attempt.uid,
    DROVER_PORTS: ports.join(','),
  };
  if (live.job.spec.shape.kind === 'array') env['DROVER_ARRAY_INDEX'] = String(task.index);
  if (live.job.spec.shape.kind === 'gang') {
    env['RANK'] = String(task.index);
    env['LOCAL_RANK'] = '0';
    env['WORLD_SIZE'] = String(live.job.taskCount);
    if (live.master) {
      env['MASTER_ADDR'] = live.master.address;
      env['MASTER_PORT'] = String(live.master.port);
    }
  }
  return env;
}
