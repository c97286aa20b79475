/** More replicas: the group is made on first use, found again by its name, and grown. */
import type { SaladSettings } from '../../model/saladSettings.ts';
import type { LaunchBatch, LaunchResult, Refusal } from '../contract.ts';
import type { Group, SaladApi } from './api.ts';
import { containerOf, creation, describe, differs, type Container } from './definition.ts';
import type { GpuClasses } from './gpuClasses.ts';
import { isAtRest } from './machines.ts';
import type { Reply } from './requests.ts';

export interface LaunchOptions {
  api: SaladApi;
  settings: SaladSettings;
  gpuClasses: GpuClasses;
  name: string;
}

export async function launch(batch: LaunchBatch, options: LaunchOptions): Promise<LaunchResult> {
  const { api, settings, name } = options;
  const classes = await options.gpuClasses.ids();
  if (classes.kind !== 'done') return notAsked(classes);
  const joinToken = batch.intents[0]?.joinToken ?? '';
  const container = containerOf(settings, { ...batch.agent, joinToken }, classes.value);
  const done: LaunchResult = {
    kind: 'launched',
    handles: batch.intents.map(() => ''),
    script: describe(name, container),
  };
  let found = await api.group();
  if (found.kind === 'refused' && found.status === 404) {
    const body = creation(name, container, batch.target, settings.countryCodes);
    const made = await api.create(body);
    if (made.kind === 'done') return done;
    if (made.kind === 'lost') return { kind: 'unknown', reason: made.reason };
    // It may be there by now: whatever has the name is the group.
    if ([400, 409].includes(made.status)) found = await api.group();
    if (found.kind !== 'done') return refusal(made, batch.target, api);
  }
  if (found.kind !== 'done') return notAsked(found);
  const failed = await grow(found.value, container, batch.target, api);
  return failed ? refusal(failed, batch.target - found.value.replicas, api) : done;
}

/**
 * A change of the container starts every replica anew, so it is made only while there is none.
 * What is above the target already is not taken away here: the new intents find it.
 */
async function grow(
  group: Group,
  container: Container,
  target: number,
  api: SaladApi,
): Promise<Failed | undefined> {
  if (!isAtRest(group)) {
    if (group.replicas >= target) return undefined;
    return failedOf(await api.patch({ replicas: target }));
  }
  const changed = differs(group, container) ? { container } : {};
  const patched = await api.patch({ replicas: target, ...changed });
  return failedOf(patched) ?? failedOf(await api.start());
}

type Failed = Exclude<Reply<unknown>, { kind: 'done' }>;

function failedOf(reply: Reply<unknown>): Failed | undefined {
  return reply.kind === 'done' ? undefined : reply;
}

/** It failed before anything was changed. */
function notAsked(reply: Failed): LaunchResult {
  const { reason } = reply;
  if (reply.kind === 'lost') {
    return { kind: 'refused', refusal: 'unreachable', reason, retryAfterMs: 0 };
  }
  return {
    kind: 'refused',
    refusal: kindOf(reply.status),
    reason,
    retryAfterMs: reply.retryAfterMs,
  };
}

/** Which status says "above the quota" is not written down, so the quota itself is asked. */
async function refusal(reply: Failed, more: number, api: SaladApi): Promise<LaunchResult> {
  const { reason } = reply;
  if (reply.kind === 'lost') return { kind: 'unknown', reason };
  const { status, retryAfterMs } = reply;
  if (status === 400 || status === 403) {
    const quotas = await api.quotas();
    if (quotas.kind === 'done') {
      const { container_replicas_quota: most, container_replicas_used: used } = quotas.value;
      if (used + more > most) {
        const told = `${reason} (${used} of the organization's ${most} replicas are in use)`;
        return { kind: 'refused', refusal: 'capacity', reason: told, retryAfterMs };
      }
    }
  }
  return { kind: 'refused', refusal: kindOf(status), reason, retryAfterMs };
}

function kindOf(status: number): Refusal {
  if (status === 429) return 'unreachable';
  return status === 409 ? 'capacity' : 'configuration';
}
