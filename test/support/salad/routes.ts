/** The emulator's routes: what each request of the public API does, and what it is answered. */
import { EmulatedGroup, type GroupBody } from './groups.ts';
import type { EmulatedInstance, World } from './instances.ts';
import { GPU_CLASSES, groupView, instanceView, problem } from './wire.ts';

/** A name stays taken for so long after its group was deleted. */
const NAME_TAKEN_MS = 120_000;
const NAME = /^[a-z][a-z0-9-]{0,61}[a-z0-9]$/;
const LONGEST_VARIABLE = 1000;

export interface Cloud {
  world: World;
  organization: string;
  project: string;
  quota: number;
  quotaStatus: number;
  groups: Map<string, EmulatedGroup>;
  deletedAtMs: Map<string, number>;
  events: (Record<string, string> & { group: string; instance_id: string })[];
}

export interface Asked {
  method: string;
  path: string;
  body: unknown;
  /** Content type. */
  kind: string;
}

export interface Answer {
  status: number;
  body?: unknown;
  html?: string;
  headers?: Record<string, string>;
}

export function answer(cloud: Cloud, asked: Asked): Answer {
  const parts = asked.path.split('?')[0]?.split('/').slice(1).map(decodeURIComponent) ?? [];
  const [, organization, what, project, kind, name, ...rest] = parts;
  if (organization !== cloud.organization) return notFound('organization');
  if (what === 'quotas') return { status: 200, body: { container_groups_quotas: quotas(cloud) } };
  if (what === 'gpu-classes') return { status: 200, body: { items: GPU_CLASSES } };
  if (what !== 'projects' || project !== cloud.project || kind !== 'containers') {
    return notFound('project');
  }
  if (asked.method === 'PATCH' && !asked.kind.startsWith('application/merge-patch+json')) {
    return { status: 415, body: problem(415, 'Unsupported Media Type', 'merge patch wanted') };
  }
  if (name === undefined) return asked.method === 'POST' ? create(cloud, asked) : all(cloud);
  const group = cloud.groups.get(name);
  return group ? groupRoute(cloud, group, rest, asked) : notFound('container group');
}

function all(cloud: Cloud): Answer {
  const items = [...cloud.groups.values()].map((group) => view(cloud, group));
  return { status: 200, body: { items } };
}

function view(cloud: Cloud, group: EmulatedGroup) {
  const shown = groupView(group, cloud.organization, cloud.project);
  if (!cloud.world.conduct.hideVariables) return shown;
  const { environment_variables: _, ...container } = shown.container;
  return { ...shown, container };
}

function create(cloud: Cloud, asked: Asked): Answer {
  const body = asked.body as GroupBody;
  const wrong = wrongIn(body);
  if (wrong) return bad(wrong);
  if (cloud.groups.has(body.name)) {
    return bad('the name is taken');
  }
  const deletedAtMs = cloud.deletedAtMs.get(body.name) ?? Number.NEGATIVE_INFINITY;
  if (cloud.world.clock.now() - deletedAtMs < NAME_TAKEN_MS) return bad('the name was just in use');
  const above = aboveQuota(cloud, body.replicas);
  if (above) return above;
  const group = new EmulatedGroup(cloud.world, body);
  cloud.groups.set(body.name, group);
  return { status: 201, body: view(cloud, group) };
}

function groupRoute(cloud: Cloud, group: EmulatedGroup, rest: string[], asked: Asked): Answer {
  const [what, id, action] = rest;
  switch (`${asked.method} ${what ?? ''}`) {
    case 'GET ':
      return { status: 200, body: view(cloud, group) };
    case 'PATCH ':
      return patch(cloud, group, asked.body as PatchBody);
    case 'DELETE ':
      group.close();
      cloud.groups.delete(group.name);
      cloud.deletedAtMs.set(group.name, cloud.world.clock.now());
      return { status: 202 };
    case 'POST start':
      group.start();
      return { status: 202 };
    case 'POST stop':
      if (group.preparing) return bad('the group is not prepared yet');
      group.stop();
      return { status: 202 };
    case 'GET system-logs':
      return { status: 200, body: { items: systemLogs(cloud, group) } };
    default:
      return instanceRoute(cloud, group, asked, { what, id, action });
  }
}

function instanceRoute(
  cloud: Cloud,
  group: EmulatedGroup,
  asked: Asked,
  { what, id, action }: Record<'what' | 'id' | 'action', string | undefined>,
): Answer {
  if (what !== 'instances') return notFound('route');
  const nowMs = cloud.world.clock.now();
  if (id === undefined) {
    const instances = group.instances.map((one) => instanceView(one, nowMs));
    return { status: 200, body: { instances } };
  }
  const instance = group.instances.find((one) => one.id === id);
  if (!instance) return notFound('instance');
  if (asked.method === 'PATCH') {
    const cost = (asked.body as { deletion_cost?: number }).deletion_cost ?? 0;
    if (!Number.isInteger(cost) || cost < 0 || cost > 100_000) return bad('deletion_cost');
    instance.deletionCost = cost;
    return { status: 200, body: instanceView(instance, nowMs) };
  }
  if (asked.method === 'POST') return act(group, instance, action);
  // The description says 202 here.
  return { status: 202, body: instanceView(instance, nowMs) };
}

function act(group: EmulatedGroup, instance: EmulatedInstance, action?: string): Answer {
  if (action === 'reallocate') group.reallocate(instance, true);
  else if (action === 'recreate' || action === 'restart') group.recreate(instance);
  else return notFound('route');
  return { status: 202 };
}

type PatchBody = Parameters<EmulatedGroup['change']>[0];

function patch(cloud: Cloud, group: EmulatedGroup, body: PatchBody): Answer {
  const wrong = replicasWrong(body.replicas ?? 0) ?? variablesWrong(body.container ?? {});
  if (wrong) return bad(wrong);
  const above = aboveQuota(cloud, (body.replicas ?? group.replicas) - group.replicas);
  if (above) return above;
  group.change(body);
  return { status: 200, body: view(cloud, group) };
}

function wrongIn(body: GroupBody): string | undefined {
  if (!NAME.test(body.name)) return 'name';
  if (typeof body.autostart_policy !== 'boolean') return 'autostart_policy';
  if (!['always', 'on_failure', 'never'].includes(body.restart_policy)) return 'restart_policy';
  const { image, resources, priority } = body.container;
  if (!image) return 'container.image';
  if (priority && !['high', 'medium', 'low', 'batch'].includes(priority)) return 'priority';
  const { cpu, memory } = resources;
  if (!(Number(cpu) >= 1 && Number(memory) >= 1024)) return 'container.resources';
  const known = new Set(GPU_CLASSES.map(({ id }) => id));
  const classes = (resources['gpu_classes'] ?? []) as string[];
  if (classes.some((id) => !known.has(id))) return 'container.resources.gpu_classes';
  return replicasWrong(body.replicas) ?? variablesWrong(body.container);
}

function replicasWrong(replicas: number): string | undefined {
  return Number.isInteger(replicas) && replicas >= 0 && replicas <= 500 ? undefined : 'replicas';
}

function variablesWrong(container: Partial<GroupBody['container']>): string | undefined {
  const long = Object.entries(container.environment_variables ?? {}).find(
    ([, value]) => typeof value !== 'string' || value.length > LONGEST_VARIABLE,
  );
  return long && `environment_variables.${long[0]}`;
}

/** Without the word quota: nobody knows how the real one says it. */
function aboveQuota(cloud: Cloud, more: number): Answer | undefined {
  const { container_replicas_used: used } = quotas(cloud);
  if (more <= 0 || used + more <= cloud.quota) return undefined;
  const { quotaStatus: status } = cloud;
  return { status, body: problem(status, 'Not possible', 'this cannot be done now') };
}

/** Replicas of every group count, running or not. */
function quotas(cloud: Cloud) {
  const used = [...cloud.groups.values()].reduce((sum, { replicas }) => sum + replicas, 0);
  return {
    container_replicas_quota: cloud.quota,
    container_replicas_used: used,
    max_container_group_reallocations_per_minute: 10,
    max_container_group_recreates_per_minute: 10,
    max_container_group_restarts_per_minute: 10,
  };
}

function systemLogs({ events }: Cloud, { name }: EmulatedGroup) {
  const size = { resource_cpu: null, resource_memory: null, resource_storage_amount: null };
  return events
    .filter((event) => event.group === name)
    .slice(-50)
    .map(({ group: _group, ...event }) => ({ ...event, ...size, resource_gpu_class: '' }));
}

function bad(what: string): Answer {
  return { status: 400, body: problem(400, 'Bad Request', `not valid: ${what}`) };
}

function notFound(what: string): Answer {
  return { status: 404, body: problem(404, 'Not Found', `no such ${what}`) };
}
