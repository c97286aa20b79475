/** What a Slurm job's state and reason mean: a phase, a failure, a sentence. */
import type { FailureClass } from '../../model/instance.ts';
import type { MachinePhase } from '../contract.ts';
import type { JobDetail, QueuedJob } from './queue.ts';

export interface Meaning {
  phase: MachinePhase;
  reason: string;
  failure: FailureClass | null;
}

const PHASES: Record<string, MachinePhase> = {
  PENDING: 'queued',
  REQUEUED: 'queued',
  REQUEUE_FED: 'queued',
  REQUEUE_HOLD: 'queued',
  SPECIAL_EXIT: 'queued',
  RESV_DEL_HOLD: 'queued',
  CONFIGURING: 'booting',
  POWER_UP_NODE: 'booting',
  RUNNING: 'running',
  RESIZING: 'running',
  SUSPENDED: 'running',
  STOPPED: 'running',
  SIGNALING: 'running',
  COMPLETING: 'ending',
  STAGE_OUT: 'ending',
};

/** Those that end a job; the sentence is for whoever looks at the pool. */
const ENDS: Record<string, { failure: FailureClass | null; words: string }> = {
  COMPLETED: { failure: null, words: 'the agent ended' },
  CANCELLED: { failure: null, words: 'cancelled by Drover or by somebody at the site' },
  TIMEOUT: { failure: null, words: 'its time limit was reached' },
  DEADLINE: { failure: null, words: 'its deadline was reached' },
  PREEMPTED: { failure: null, words: 'the site took the node for other work' },
  REVOKED: { failure: null, words: 'another cluster of the federation took it' },
  OUT_OF_MEMORY: { failure: 'WORKLOAD_FATAL', words: 'it used more memory than it asked for' },
  NODE_FAIL: { failure: 'INFRA_FATAL', words: 'its node failed' },
  BOOT_FAIL: { failure: 'INFRA_FATAL', words: 'its node did not boot' },
  LAUNCH_FAILED: { failure: 'INFRA_FATAL', words: 'its node could not start it' },
  RECONFIG_FAIL: { failure: 'INFRA_FATAL', words: 'its node could not be set up' },
};

/** Exit code of a bootstrap for "not my fault, try again": EX_TEMPFAIL of sysexits.h. */
const TRY_AGAIN = 75;

/** Reasons for which a job waits until a person does something, and what. */
const STUCK: [RegExp, string][] = [
  [/^JobHeldUser/, 'it is held: scontrol release it, or let Drover cancel it'],
  [/^JobHeldAdmin/, "it is held by the site's administrators: ask them"],
  [
    /launch failed requeued held/i,
    'its node failed to start it: see slurmd there, then release it',
  ],
  [/requeued in held state/i, 'it is held: scontrol release it, or let Drover cancel it'],
  [/^JobHoldMaxRequeue/, 'it was requeued too often: see the output of the job, then release it'],
  [/^PartitionNodeLimit/, 'it asks for more nodes than the partition gives'],
  [/^PartitionTimeLimit/, 'it asks for more time than the partition gives: lower timeLimitMs'],
  [/^PartitionDown|^PartitionInactive/, 'the partition starts no jobs just now'],
  [/^BadConstraints/, 'no node ever fits: check constraint, gres and the resources asked for'],
  [/^DependencyNeverSatisfied/, 'what it waits for has failed'],
  [/^(InvalidAccount|InvalidQOS)|account not known|not permitted/i, 'check account and qos'],
  [/^(Assoc|QOS|Association)/, "a limit of the site's on the account or qos is reached"],
  [/^ReqNodeNotAvail/, 'its nodes are down, drained or reserved'],
  [/^ReservationDeleted|^Reservation.*Invalid/, 'its reservation is gone'],
  [/^AccountNotAllowed|^QOSNotAllowed/, 'the partition does not take this account or qos'],
];

export function meaningOf(job: QueuedJob, detail: JobDetail | undefined): Meaning {
  const { state, reason, nodes } = job;
  const end = ENDS[state];
  if (end) {
    const because = plainReason(reason) && state !== 'CANCELLED' ? ` (${reason})` : '';
    return { phase: 'gone', reason: `${state}: ${end.words}${because}`, failure: end.failure };
  }
  if (state === 'FAILED') return failed(reason, detail);
  // One that a newer Slurm has: while it is listed it is not gone.
  const phase = PHASES[state] ?? 'ending';
  if (phase === 'queued') return { phase, reason: waiting(state, reason), failure: null };
  const where = nodes && !job.host ? ` on ${nodes}` : '';
  const why = plainReason(reason) ? ` (${reason})` : '';
  return { phase, reason: `${state}${where}${why}`, failure: null };
}

function waiting(state: string, reason: string): string {
  const named = state === 'PENDING' ? reason || state : `${state} ${plainReason(reason)}`.trim();
  const advice = STUCK.find(([pattern]) => pattern.test(reason))?.[1];
  if (advice) return `${named}: ${advice}`;
  const held = state === 'REQUEUE_HOLD' || state === 'SPECIAL_EXIT' || state === 'RESV_DEL_HOLD';
  return held ? `${named}: it is held: scontrol release it, or let Drover cancel it` : named;
}

function failed(reason: string, detail: JobDetail | undefined): Meaning {
  const told = (failure: FailureClass, words: string): Meaning => ({
    phase: 'gone',
    reason: `FAILED: ${words}`,
    failure,
  });
  if (/Launch|Prolog|NodeFail|Communication|BootFail/i.test(reason)) {
    return told('INFRA_FATAL', `its node could not start it (${reason})`);
  }
  if (reason.startsWith('BadConstraints')) {
    return told('WORKLOAD_FATAL', 'no node ever fits what it asked for (BadConstraints)');
  }
  if (!detail || (detail.code === 0 && detail.signal === 0)) {
    return told('WORKLOAD_FATAL', plainReason(reason) || 'its script failed');
  }
  if (detail.signal > 0) {
    return told('INFRA_FATAL', `its script was ended by signal ${detail.signal}`);
  }
  if (detail.code === TRY_AGAIN) {
    return told('INFRA_FATAL', `its script ended with ${TRY_AGAIN}: the node could not join`);
  }
  const missing = detail.code === 127 ? ': a command was not found' : '';
  return told('WORKLOAD_FATAL', `its script ended with ${detail.code}${missing}`);
}

function plainReason(reason: string): string {
  return reason === 'None' || reason === '(null)' ? '' : reason;
}
