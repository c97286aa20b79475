/** How a gang lies on its workers, numbered as torchrun numbers processes and nodes. */
import type { Attempt } from '../model/attempt.ts';
import type { AttemptUid } from '../model/ids.ts';
import type { Worker } from '../model/worker.ts';
import { PREFLIGHT, type GangOrder } from '../protocol/agent.ts';
import type { LiveJob } from '../state/live.ts';
import type { State } from '../state/state.ts';
import { hashSecret } from './secrets.ts';

/** The members on one worker: what torchrun calls a node, or group. */
interface Group {
  worker: Worker;
  /** By lowest rank. */
  rank: number;
  /** In order, so that a member's place here is its local rank. */
  ranks: number[];
  visibleGpus: number[];
}

interface Layout {
  round: number;
  groups: Group[];
  /** By rank; a member that was over before this was worked out is missing. */
  groupOf: (Group | undefined)[];
  master: Attempt | undefined;
  preflight: boolean;
}

/**
 * Worked out once per round, when its members are assigned together: members that end early must
 * not change the numbers of those that are told later.
 */
const layouts = new WeakMap<LiveJob, Layout>();

function layoutOf(state: State, live: LiveJob): Layout {
  const known = layouts.get(live);
  if (known?.round === live.job.round) return known;
  const layout = newLayout(state, live);
  layouts.set(live, layout);
  return layout;
}

function newLayout(state: State, live: LiveJob): Layout {
  const groups = new Map<string, Group>();
  const groupOf: Layout['groupOf'] = Array.from({ length: live.job.taskCount });
  for (let rank = 0; rank < live.job.taskCount; rank++) {
    const attempt = live.attempts.get(rank);
    const worker = attempt && state.workers.get(attempt.worker)?.worker;
    if (!worker) continue;
    let group = groups.get(worker.id);
    if (!group) groups.set(worker.id, (group = newGroup(worker, groups.size)));
    group.ranks.push(rank);
    groupOf[rank] = group;
  }
  const all = [...groups.values()];
  for (const group of all) group.visibleGpus = visibleGpus(state, live, group);
  return {
    round: live.job.round,
    groups: all,
    groupOf,
    master: live.attempts.get(0),
    preflight: all.every(({ worker }) => knowsPreflight(worker)),
  };
}

const newGroup = (worker: Worker, rank: number): Group => ({
  ...{ worker, rank },
  ranks: [],
  visibleGpus: [],
});

function knowsPreflight({ attributes }: Worker): boolean {
  return (attributes['capabilities'] ?? '').split(' ').includes(PREFLIGHT);
}

/**
 * Scripts for torchrun take the GPU numbered by LOCAL_RANK. Where each member has one GPU, all
 * members of a worker see all of theirs, so that this is the own one; otherwise each sees its own.
 */
function visibleGpus(state: State, live: LiveJob, { worker, ranks }: Group): number[] {
  const gpus = new Set<number>();
  for (const rank of ranks) {
    const claim = state.claims.get(live.attempts.get(rank)?.uid ?? ('' as AttemptUid));
    const [index, ...more] = claim?.devices ?? [];
    const device = worker.resources.devices.find((one) => one.index === index);
    if (index === undefined || more.length > 0 || device?.kind !== 'gpu') return [];
    gpus.add(index);
  }
  return gpus.size === ranks.length && gpus.size > 1 ? [...gpus] : [];
}

/** torchrun's variables for one process per task. */
export function gangVariables(state: State, live: LiveJob, rank: number): Record<string, string> {
  const { job, master } = live;
  const { groups, groupOf, master: first } = layoutOf(state, live);
  const group = groupOf[rank];
  const size = job.taskCount;
  const numbers: Record<string, number> = {
    RANK: rank,
    WORLD_SIZE: size,
    LOCAL_RANK: Math.max(0, group?.ranks.indexOf(rank) ?? 0),
    LOCAL_WORLD_SIZE: group?.ranks.length ?? 1,
    GROUP_RANK: group?.rank ?? 0,
    // Not torchrun's own, but what Lightning and many scripts read.
    NODE_RANK: group?.rank ?? 0,
    GROUP_WORLD_SIZE: groups.length,
    ROLE_RANK: rank,
    ROLE_WORLD_SIZE: size,
    TORCHELASTIC_RESTART_COUNT: job.round,
    TORCHELASTIC_MAX_RESTARTS: job.spec.retries + job.spec.maxInterruptions,
  };
  const env: Record<string, string> = {};
  for (const name in numbers) env[name] = String(numbers[name]);
  env['ROLE_NAME'] = 'default';
  env['TORCHELASTIC_RUN_ID'] = job.id;
  // The store at MASTER_PORT is rank 0's to open; no agent of torchrun has one there.
  env['TORCHELASTIC_USE_AGENT_STORE'] = 'False';
  if (master) {
    env['MASTER_ADDR'] = master.address;
    env['MASTER_PORT'] = String(master.port);
  }
  // By which members know each other; not the agents' own token, which goes over the network.
  if (first) env['DROVER_GANG_TOKEN'] = hashSecret(`members ${first.uid}`);
  return env;
}

/** What torchrun sets only where the user has not. */
export const GANG_DEFAULTS = { TORCH_NCCL_ASYNC_ERROR_HANDLING: '1' };

/** Undefined where an agent of the gang is too old to meet others before the start. */
export function gangOrder(state: State, live: LiveJob, rank: number): GangOrder | undefined {
  const layout = layoutOf(state, live);
  const group = layout.groupOf[rank];
  const first = layout.groupOf[0];
  if (!group || !layout.preflight) return undefined;
  return {
    rank,
    size: live.job.taskCount,
    round: layout.round,
    token: layout.master ? hashSecret(layout.master.uid) : '',
    worker: group.worker.name,
    master: first && live.master ? { worker: first.worker.name, ...live.master } : null,
    members: rank === 0 ? layout.groupOf.map(memberOf) : [],
    visibleGpus: group.visibleGpus,
  };
}

function memberOf(group: Group | undefined): { worker: string; address: string } {
  return { worker: group?.worker.name ?? '', address: group?.worker.address ?? '' };
}
