/** What comes for a job that fits nowhere, or why nothing does. */
import { isComing } from '../core/lifecycle/instance.ts';
import type { Instance } from '../model/instance.ts';
import type { LiveInstance, LiveJob } from '../state/live.ts';
import type { State } from '../state/state.ts';
import type { PoolLoops } from './pools/loops.ts';
import type { Hold } from './why.ts';

/** So many pools say why they bring nothing. */
const POOLS_TOLD = 3;

/** Room that is not there is looked for elsewhere: the same reason, and what is done about it. */
export function withMachines(
  hold: Hold,
  state: State,
  live: LiveJob,
  loops: PoolLoops,
  nowMs: number,
): Hold {
  const instance = comingFor(state, live, loops);
  const lacking = lackingOf(live, loops);
  if (!instance) return lacking ? { ...hold, sentence: `${hold.sentence}; ${lacking}` } : hold;
  const { startsAtMs } = instance;
  const comes = sentenceOf(instance, loops);
  return {
    ...hold,
    code: 'COMING',
    sentence: lacking ? `${comes}; for more of its kind there is no room: ${lacking}` : comes,
    suggestions: [`see it: drover instances ${instance.id}`],
    ...(startsAtMs !== null && { predictedStartAtMs: Math.max(nowMs, startsAtMs) }),
  };
}

/** Why pools bring nothing (more) for its class; empty: they do, or there are none. */
function lackingOf({ classKey }: LiveJob, loops: PoolLoops): string {
  const reasons = loops.told.unmet(classKey)?.reasons ?? [];
  return reasons
    .slice(0, POOLS_TOLD)
    .map(({ sentence, untilMs }) => {
      return untilMs === null ? sentence : `${sentence}, until ${clockTime(untilMs)}`;
    })
    .join('; ');
}

/** Sized for one of its tasks, or for any work of its kind. */
function comingFor(state: State, { tasks, classKey }: LiveJob, loops: PoolLoops): Instance | null {
  const { instances } = state.machines;
  for (const { instance } of instances.values()) {
    if (!isComing(instance.state) || instance.tasks.length === 0) continue;
    if (tasks.some(({ id }) => instance.tasks.includes(id))) return instance;
  }
  const coming = loops.told.coming(classKey)?.instances ?? [];
  const first = coming.map((id) => instances.get(id)).find((one) => isOnItsWay(one));
  return first?.instance ?? null;
}

function isOnItsWay(live: LiveInstance | undefined): live is LiveInstance {
  return live !== undefined && isComing(live.instance.state);
}

function sentenceOf(
  { pool, state, handle, reason, startsAtMs }: Instance,
  loops: PoolLoops,
): string {
  const noun = loops.find(pool)?.pool.provider.capabilities.noun ?? 'machine';
  const which = handle === '' ? `a ${noun}` : `${noun} ${handle}`;
  const how: Partial<Record<Instance['state'], string>> = {
    INTENDED: 'is about to be asked for',
    BOOTING: 'starts',
    PROBING: 'is being looked at',
  };
  const said = [
    `waiting for ${which} of pool ${pool}`,
    ...(how[state] ? [`which ${how[state]}`] : []),
    ...(reason ? [`reason ${reason}`] : []),
    ...(startsAtMs === null ? [] : [`estimated start ${clockTime(startsAtMs)}`]),
  ];
  return said.join(', ');
}

function clockTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
