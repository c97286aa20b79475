/** drover help: every command in one line each. */
import type { Command } from './command.ts';

type Described = Pick<Command, 'name' | 'summary'>;

/** The roles that bin/drover.ts runs itself; listed so that the help is whole. */
export const ROLES: Described[] = [
  { name: 'up', summary: 'Start gateway, controller and a local agent' },
  { name: 'controller', summary: 'Start a controller' },
  { name: 'gateway', summary: 'Start a gateway' },
  { name: 'agent', summary: 'Join this machine as a worker: agent --join URL TOKEN' },
  { name: 'connector', summary: 'Stand on a login node for a site that nobody else reaches' },
];

export function overview(commands: Command[], roles: Described[]): string {
  const width = Math.max(...[...commands, ...roles].map(({ name }) => name.length));
  const line = ({ name, summary }: Described): string => `  ${name.padEnd(width)}  ${summary}`;
  return `${[
    'drover: one control plane for every GPU you can reach',
    '',
    'usage: drover COMMAND [options]',
    '',
    'jobs and machines:',
    ...commands.map(line),
    ...(roles.length > 0 ? ['', 'servers:', ...roles.map(line)] : []),
    '',
    'drover COMMAND --help says more. Try: drover run -- echo hello',
  ].join('\n')}\n`;
}
