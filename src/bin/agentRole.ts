/** The agent's flags; apart from the other roles, so that it can be a file of its own. */
import type { Role } from './role.ts';

export const AGENT_FLAGS = {
  resources: 'agent.resources',
  name: 'agent.name',
  address: 'agent.address',
  network: 'agent.network',
  'ca-file': 'agent.caFile',
};

export const AGENT_ROLE: Role = {
  usage:
    'drover agent --join URL [TOKEN] [--data DIR] [--name N] ' +
    '[--resources cpus=16,mem=64Gi,gpus=4:A100] [--only-tenant T] [--only-interruptible] ' +
    '[--ca-file FILE]\n' +
    'TOKEN may be left out where DROVER_JOIN_TOKEN holds it, and once the machine has joined.',
  settings: { ...AGENT_FLAGS, data: 'agent.dataDir' },
  options: {
    join: { type: 'string' },
    'only-tenant': { type: 'string', multiple: true },
    'only-interruptible': { type: 'boolean' },
  },
  run: async (args) => (await import('./agent.ts')).runAgent(args),
};
