/** What the container group of a pool is: its name, its container, and what the agent is told. */
import { createHash } from 'node:crypto';
import { LONGEST_VARIABLE, type SaladSettings } from '../../model/saladSettings.ts';
import type { AgentLaunch } from '../contract.ts';
import type { Group } from './api.ts';

const MIB = 1024 * 1024;
const LONGEST_NAME = 63;
/** Of the hash that keeps two names apart which look alike without their odd characters. */
const HASH_LENGTH = 8;
const CA_FILE = '"$HOME/.drover-ca.pem"';

export interface Container {
  image: string;
  command: string[];
  priority: string;
  resources: Record<string, unknown>;
  environment_variables: Record<string, string>;
}

/** The same for ever for this cluster and pool: by it the group is found after a lost reply. */
export function groupName(clusterId: string, pool: string): string {
  const wanted = `drover-${clusterId}-${pool}`;
  const name = wanted.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  if (name === wanted && name.length <= LONGEST_NAME && !name.endsWith('-')) return name;
  const hash = createHash('sha256').update(wanted).digest('hex').slice(0, HASH_LENGTH);
  return `${name.slice(0, LONGEST_NAME - HASH_LENGTH - 1).replace(/-+$/, '')}-${hash}`;
}

export function containerOf(
  settings: SaladSettings,
  agent: AgentLaunch & { joinToken: string },
  gpuClasses: readonly string[],
): Container {
  const authorities = pieces(agent.authorities);
  return {
    image: settings.image,
    command: ['/bin/sh', '-c', script(settings.agentCommand, authorities.length)],
    priority: settings.priority,
    resources: resourcesOf(settings, gpuClasses),
    environment_variables: {
      ...settings.environment,
      DROVER_URL: agent.url,
      DROVER_JOIN_TOKEN: agent.joinToken,
      DROVER_AGENT_SELF_DESTRUCT_AFTER_MS: String(agent.selfDestructAfterMs),
      ...Object.fromEntries(authorities.map((piece, at) => [`AGENT_CA_${at}`, piece])),
    },
  };
}

export function creation(name: string, container: Container, replicas: number, codes: string[]) {
  return {
    name,
    container,
    replicas,
    autostart_policy: true,
    // An agent that ends itself because nobody answers has ended well, and stays ended.
    restart_policy: 'on_failure',
    ...(codes.length > 0 && { country_codes: codes }),
  };
}

/** For a person: values of variables may be anybody's secret. */
export function describe(name: string, { environment_variables, ...container }: Container): string {
  const variables = Object.keys(environment_variables);
  return JSON.stringify({ name, container: { ...container, variables } }, undefined, 2);
}

/** Of what SaladCloud shows of the group; what it hides is taken for different. */
export function differs(group: Group, wanted: Container): boolean {
  const { command, environment_variables: shown } = group.container;
  if (!looksAlike(group, wanted.image, wanted.resources)) return true;
  if (JSON.stringify(command) !== JSON.stringify(wanted.command)) return true;
  return Object.entries(wanted.environment_variables).some(([name, value]) => {
    return shown?.[name] !== value;
  });
}

/** What the settings alone decide. */
export function looksAlike(
  { container }: Group,
  image: string,
  resources: Record<string, unknown>,
): boolean {
  if (container.image !== image) return false;
  return Object.entries(resources).every(([name, value]) => {
    const known = container.resources[name];
    return known === undefined || JSON.stringify(known) === JSON.stringify(value);
  });
}

export function resourcesOf(settings: SaladSettings, gpuClasses: readonly string[]) {
  return {
    cpu: settings.cpus,
    memory: Math.ceil(settings.memoryBytes / MIB),
    gpu_classes: [...gpuClasses],
    storage_amount: settings.storageBytes,
    shm_size: Math.ceil(settings.shmBytes / MIB),
  };
}

/** SaladCloud tells each replica who and where it is; the group's variables are the same in all. */
function script(agentCommand: string, authorities: number): string {
  const lines = [
    ': "${SALAD_INSTANCE_ID:?}" "${SALAD_MACHINE_ID:?}"',
    'export DROVER_AGENT_INSTANCE="$SALAD_INSTANCE_ID"',
    'export DROVER_AGENT_MACHINE="salad:$SALAD_INSTANCE_ID"',
    'export DROVER_AGENT_HOST="$SALAD_MACHINE_ID"',
    'export DROVER_AGENT_NAME="salad-$(printf %.8s "$SALAD_INSTANCE_ID")"',
    'export HOME="${HOME:-/root}"',
  ];
  if (authorities > 0) {
    const parts = Array.from({ length: authorities }, (_, at) => `"$AGENT_CA_${at}"`);
    lines.push(`printf %s ${parts.join('')} > ${CA_FILE}`);
    lines.push(`export DROVER_CA_FILE=${CA_FILE}`);
  }
  return [...lines, agentCommand].join('\n');
}

/** A certificate is longer than a variable may be. */
function pieces(text: string): string[] {
  const count = Math.ceil(text.length / LONGEST_VARIABLE);
  return Array.from({ length: count }, (_, at) =>
    text.slice(at * LONGEST_VARIABLE, (at + 1) * LONGEST_VARIABLE),
  );
}
