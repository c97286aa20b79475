/** drover connector on the command line. */
import type { Role } from './role.ts';

export const CONNECTOR_ROLE: Role = {
  usage:
    'drover connector --site NAME --join URL [TOKEN] [--listen HOST:PORT] [--token-file FILE] ' +
    '[--ca-file FILE]\n' +
    'Started by a user on a login node: runs what the controller asks of the site (sbatch, ' +
    'squeue, scancel)\nas that user, and passes on what agents say to http://HOST:PORT.\n' +
    'TOKEN is a join token of a pool at the site; better given by DROVER_JOIN_TOKEN or ' +
    '--token-file.\nHOST:PORT is 127.0.0.1:7072; name an address that compute nodes reach.',
  settings: { 'ca-file': 'agent.caFile' },
  options: {
    site: { type: 'string' },
    join: { type: 'string' },
    listen: { type: 'string' },
    'token-file': { type: 'string' },
  },
  run: async (args) => (await import('./connector.ts')).runConnector(args),
};
