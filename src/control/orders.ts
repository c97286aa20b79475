/** What an agent is told to run: the job's command with Drover's variables around it. */
import type { Attempt } from '../model/attempt.ts';
import type { IdleRule } from '../model/jobParts.ts';
import type { Task } from '../model/task.ts';
import type { AttemptOrder, OrderParts } from '../protocol/agent.ts';
import type { LiveJob } from '../state/live.ts';
import type { State } from '../state/state.ts';
import { GANG_DEFAULTS, gangOrder, gangVariables } from './gangs.ts';

export function orderOf(
  state: State,
  attempt: Attempt,
  leaseMs: number,
  idleDevices: IdleRule | null,
): AttemptOrder | null {
  const found = state.task(attempt.task);
  const claim = state.claims.get(attempt.uid);
  const worker = state.workers.get(attempt.worker)?.worker;
  if (!found || !claim || !worker) return null;
  const { spec } = found.live.job;
  const isGang = spec.shape.kind === 'gang';
  const gang = isGang ? gangOrder(state, found.live, found.task.index) : undefined;
  const idle = claim.devices.length > 0 ? (spec.rules?.idle ?? idleDevices) : null;
  const own = variables(state, found.live, found.task, attempt, claim.ports);
  return {
    uid: attempt.uid,
    job: attempt.job,
    task: attempt.task,
    index: found.task.index,
    n: attempt.n,
    command: spec.command,
    env: {
      ...(isGang && GANG_DEFAULTS),
      ...(spec.checkpoint && resumeVariables(found.task)),
      ...spec.env,
      ...own,
    },
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
    ...(gang && { gang }),
    ...partsOf(state, found.live, found.task),
    ...(idle && { idle }),
  };
}

/** What differs from a plain command; nothing for most jobs. */
function partsOf(state: State, { job: { id, spec } }: LiveJob, task: Task): OrderParts {
  const { code, inputs, environment, checkpoint, secrets, rules, timeLimitMs } = spec;
  const restore = checkpoint ? manifestsOf(state, task) : [];
  return {
    ...(code && { code }),
    ...(inputs && { inputs }),
    ...(environment && { environment }),
    ...(checkpoint && { checkpoint }),
    ...(restore.length > 0 && { restore }),
    ...(secrets && { secrets }),
    ...(rules?.outputs.length && { outputs: rules.outputs }),
    ...(rules?.maySubmit && { maySubmit: true }),
    ...(state.downstream.has(id) && { downstream: true }),
    ...(rules?.keepOnFailureMs && { keepOnFailureMs: rules.keepOnFailureMs }),
    ...(timeLimitMs > 0 && { timeLimitMs }),
  };
}

/** Newest first. */
function manifestsOf(state: State, task: Task): string[] {
  return state.checkpoints
    .of(task.id)
    .map(({ manifest }) => manifest)
    .toReversed();
}

/** The same in every attempt: a run that resumes goes on as one in the user's records too. */
function resumeVariables(task: Task): Record<string, string> {
  return { WANDB_RUN_ID: task.id, WANDB_RESUME: 'allow', DROVER_RESUME: '0' };
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
    Object.assign(env, gangVariables(state, live, task.index));
  }
  return env;
}
