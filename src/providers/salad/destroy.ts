/** Fewer replicas: those that stay are made dear to delete, then the group shrinks. */
import type { DestroyRequest, DestroyResult } from '../contract.ts';
import type { SaladApi, SaladInstance } from './api.ts';
import { isAlive, isAtRest } from './machines.ts';
import type { Reply } from './requests.ts';

/** Of those that stay. New replicas have 0 and the lowest goes first. */
const STAYS_COST = 100;
const GOES_COST = 0;
/** Marked in one call; the next one goes on. A share of the requests a minute. */
export const MARKS_PER_CALL = 40;

export async function destroy(request: DestroyRequest, api: SaladApi): Promise<DestroyResult> {
  const group = await api.group();
  if (group.kind === 'refused' && group.status === 404) return { kind: 'asked' };
  if (group.kind !== 'done') return unknown(group);
  if (request.target === 0) return stop(api);
  if (isAtRest(group.value)) return { kind: 'asked' };
  const instances = await api.instances();
  if (instances.kind !== 'done') return unknown(instances);
  const handles = new Set(request.machines.map(({ handle }) => handle));
  const alive = instances.value.filter(isAlive);
  const going = alive.filter(({ id }) => handles.has(id));
  const { replicas } = group.value;
  if (going.length === 0 && replicas === request.target) return { kind: 'asked' };
  const marked = await mark(alive, handles, api);
  if (marked) return marked;
  return shrink(alive.length - going.length, going.length, request.target, api);
}

/** Without a number of replicas, too: those of all groups count against the quota. */
async function stop(api: SaladApi): Promise<DestroyResult> {
  const stopped = await api.stop();
  const scaled = await api.patch({ replicas: 0 });
  if (scaled.kind !== 'done') return unknown(scaled);
  if (stopped.kind === 'done') return { kind: 'asked' };
  // One that is still being prepared cannot be stopped; without replicas it costs nothing.
  const notYet = stopped.kind === 'refused' && [400, 409].includes(stopped.status);
  return notYet ? { kind: 'asked' } : unknown(stopped);
}

/** Undefined when all of them have their mark. */
async function mark(
  alive: readonly SaladInstance[],
  going: ReadonlySet<string>,
  api: SaladApi,
): Promise<DestroyResult | undefined> {
  const costOf = ({ id }: SaladInstance): number => (going.has(id) ? GOES_COST : STAYS_COST);
  const wrong = alive.filter((one) => (one.deletion_cost ?? 0) !== costOf(one));
  for (const one of wrong.slice(0, MARKS_PER_CALL)) {
    const reply = await api.setDeletionCost(one.id, costOf(one));
    // Gone by itself meanwhile.
    if (reply.kind === 'refused' && reply.status === 404) continue;
    if (reply.kind !== 'done') return unknown(reply);
  }
  const left = wrong.length - MARKS_PER_CALL;
  if (left <= 0) return undefined;
  return { kind: 'unknown', reason: `${left} replicas that stay have no mark yet` };
}

/**
 * As long as more are wanted than stay, a lower number alone would end none of those that go: the
 * group first shrinks to those that stay and then grows, so that others take the places.
 */
async function shrink(
  stay: number,
  going: number,
  target: number,
  api: SaladApi,
): Promise<DestroyResult> {
  if (going > 0 && stay < target) {
    const fewer = await api.patch({ replicas: stay });
    if (fewer.kind !== 'done') return unknown(fewer);
  }
  const reply = await api.patch({ replicas: target });
  return reply.kind === 'done' ? { kind: 'asked' } : unknown(reply);
}

function unknown(reply: Exclude<Reply<unknown>, { kind: 'done' }>): DestroyResult {
  return { kind: 'unknown', reason: reply.reason };
}
