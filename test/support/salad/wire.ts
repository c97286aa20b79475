/** The emulator's objects as SaladCloud shows them: every key that its description requires. */
import type { EmulatedGroup } from './groups.ts';
import type { EmulatedInstance } from './instances.ts';

/** What stands where a replica has no machine yet. */
const NO_MACHINE = '00000000-0000-0000-0000-000000000000';
const NEVER = '0001-01-01T00:00:00Z';

export const GPU_CLASSES = [
  gpuClass('a5db5c50-cbcb-4596-ae80-6a0c8090d80f', 'RTX 3090 (24 GB)', ['0.25', '0.10']),
  gpuClass('ed563892-aacd-40f5-80b7-90c9be6c759b', 'RTX 4090 (24 GB)', ['0.40', '0.16']),
];

function gpuClass(id: string, name: string, [high = '', batch = '']: string[]) {
  const prices = [
    { priority: 'high', price: high },
    { priority: 'batch', price: batch },
  ];
  return { id, name, prices, is_high_demand: false };
}

export function groupView(group: EmulatedGroup, organization: string, project: string) {
  const { container } = group;
  const count = (...states: string[]): number =>
    group.instances.filter(({ state }) => states.includes(state)).length;
  return {
    id: group.id,
    name: group.name,
    display_name: group.name,
    organization_name: organization,
    project_name: project,
    container: {
      image: container.image,
      command: container.command ?? null,
      environment_variables: container.environment_variables ?? {},
      resources: { gpu_classes: [], ...container.resources },
      image_caching: true,
    },
    autostart_policy: group.autostart,
    restart_policy: group.restartPolicy,
    replicas: group.replicas,
    priority: container.priority ?? 'high',
    country_codes: group.countryCodes,
    pending_change: group.preparing,
    'scaling-actions': [],
    'scheduled-scaling-enabled': false,
    version: group.version,
    create_time: timeOf(group.createdAtMs),
    update_time: timeOf(group.updatedAtMs),
    current_state: {
      status: group.status(),
      description: group.description,
      start_time: group.startedAtMs === null ? NEVER : timeOf(group.startedAtMs),
      finish_time: NEVER,
      instance_status_counts: {
        allocating_count: count('allocating'),
        creating_count: count('creating', 'downloading'),
        running_count: count('running'),
        stopping_count: count('stopping'),
      },
    },
  };
}

export function instanceView(instance: EmulatedInstance, nowMs: number) {
  const { state } = instance;
  return {
    id: instance.id,
    machine_id: instance.machineId || NO_MACHINE,
    state,
    update_time: timeOf(instance.changedAtMs),
    version: instance.version,
    deletion_cost: instance.deletionCost,
    ...(state === 'downloading' && { pulling_progress: instance.progress(nowMs) }),
    ...(state === 'running' && { started: instance.started, ready: instance.started }),
  };
}

export function problem(status: number, title: string, detail: string) {
  return { type: 'about:blank', title, status, detail, instance: '/emulator' };
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
