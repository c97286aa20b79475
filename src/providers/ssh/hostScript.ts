/** What is said to a host: host.sh with what it must know, and what it leaves there to be run. */
import { readFileSync } from 'node:fs';
import type { AgentLaunch } from '../contract.ts';
import { quote } from '../remote/quote.ts';

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
const HOST = read('host.sh');
const RUN = read('run.sh').trimEnd();
const DEFAULT_COMMAND = read('command.sh').trimEnd();

/** The exit code by which `command.sh` says that it cannot fetch the agent. */
export const CANNOT_FETCH = 97;
/** The exit code by which `host.sh` says that another label is there. */
export const TAKEN = 3;

/** Where on the host everything lies. */
export interface Place {
  root: string;
  cluster: string;
  pool: string;
  host: string;
}

type Verb = 'look' | 'launch' | 'start' | 'stop' | 'logs' | 'upload';

export function hostScript(verb: Verb, place: Place, more: Record<string, string> = {}): string {
  const all = { verb, ...place, pool: folderName(place.pool), ...more };
  const assignments = Object.entries(all).map(([name, value]) => `${name}=${quote(value)}`);
  return `${assignments.join('\n')}\n${HOST}`;
}

/** A pool may be called anything. */
function folderName(name: string): string {
  return encodeURIComponent(name).replace(/^\./, '%2E');
}

export interface LaunchWords {
  /** For people: without the token. */
  shown: string;
  variables: Record<string, string>;
}

export interface LaunchFacts {
  label: string;
  joinToken: string;
  agent: AgentLaunch;
  host: string;
  pool: string;
  resources: string;
  agentCommand: string;
  version: string;
}

export function launchWords(facts: LaunchFacts): LaunchWords {
  const { agent, host, pool, label, resources } = facts;
  const environment = variables({
    DROVER_URL: agent.url,
    DROVER_AGENT_NAME: host,
    DROVER_AGENT_MACHINE: `ssh:${pool}:${host}`,
    DROVER_AGENT_HOST: host,
    DROVER_AGENT_INSTANCE: label,
    DROVER_AGENT_SELF_DESTRUCT_AFTER_MS: String(agent.selfDestructAfterMs),
    DROVER_AGENT_RESOURCES: resources,
  });
  const command = facts.agentCommand || DEFAULT_COMMAND;
  return {
    shown: `# on ${host}\n${environment}\n${command}\n`,
    variables: {
      ...{ label, environment, command, resources, run: RUN, version: facts.version },
      ...{ url: agent.url, token: facts.joinToken, authorities: agent.authorities },
    },
  };
}

/** Empty ones are left out: they mean the same. */
function variables(values: Record<string, string>): string {
  return Object.entries(values)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `export ${name}=${quote(value)}`)
    .join('\n');
}
