/** The roles: processes that stay. Everything else is a command. */
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { readFileSync } from 'node:fs';
import { DroverError } from '../lib/errors.ts';
import { loadSettings, type Settings } from '../model/settings.ts';
import { tellFailure } from './failure.ts';

export interface RoleArguments {
  settings: Settings;
  positionals: string[];
  flags: Record<string, string | boolean | string[] | undefined>;
}

interface Role {
  usage: string;
  /** Flags that are settings: their names and the settings they set. */
  settings: Record<string, string>;
  options: NonNullable<ParseArgsConfig['options']>;
  run: (args: RoleArguments) => Promise<number>;
}

const SERVER_FLAGS = { data: 'data.dir', host: 'server.host', port: 'server.port' };
const AGENT_FLAGS = {
  resources: 'agent.resources',
  name: 'agent.name',
  address: 'agent.address',
  network: 'agent.network',
  'ca-file': 'agent.caFile',
};

const ROLES = {
  up: {
    usage: 'drover up [--data DIR] [--host H] [--port N] [--resources R] [--name N] [--no-agent]',
    settings: { ...SERVER_FLAGS, ...AGENT_FLAGS },
    options: { 'no-agent': { type: 'boolean' } },
    run: async (args) => (await import('./up.ts')).runUp(args),
  },
  controller: {
    usage: 'drover controller [--data DIR] [--with-gateway] [--host H] [--port N]',
    settings: SERVER_FLAGS,
    options: { 'with-gateway': { type: 'boolean' } },
    run: async (args) => (await import('./controller.ts')).runController(args),
  },
  gateway: {
    usage: 'drover gateway --coordinator grpc://HOST:PORT [--host H] [--port N]',
    settings: SERVER_FLAGS,
    options: { coordinator: { type: 'string' } },
    run: async (args) => (await import('./gateway.ts')).runGateway(args),
  },
  agent: {
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
  },
  connector: {
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
  },
} satisfies Record<string, Role>;

export function isRole(name: string): name is keyof typeof ROLES {
  return Object.hasOwn(ROLES, name);
}

/** Resolves with the exit code when the role has ended. */
export async function runRole(name: keyof typeof ROLES, args: string[]): Promise<number> {
  const role: Role = ROLES[name];
  try {
    if (args.includes('--help') || args.includes('-h')) {
      process.stdout.write(`usage: ${role.usage}\n`);
      return 0;
    }
    const parsed = parse(role, args);
    const { settings, warnings } = loadSettings({
      env: process.env,
      argvOverrides: overrides(role, parsed.flags),
      readFile: (path) => readFileSync(path, 'utf8'),
    });
    // Under `drover up` these were told already.
    const told = process.send ? [] : warnings;
    for (const warning of told) process.stderr.write(`warning: ${warning}\n`);
    return await role.run({ settings, ...parsed });
  } catch (error) {
    await tellFailure(name, error);
    return error instanceof DroverError && error.code === 'INVALID_ARGUMENT' ? 2 : 1;
  }
}

function parse(role: Role, args: string[]): Omit<RoleArguments, 'settings'> {
  const options = { ...role.options };
  for (const flag of Object.keys(role.settings)) options[flag] = { type: 'string' };
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    return { flags: values as RoleArguments['flags'], positionals };
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new DroverError('INVALID_ARGUMENT', detail, { hint: role.usage, cause });
  }
}

function overrides(role: Role, flags: RoleArguments['flags']): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const [flag, setting] of Object.entries(role.settings)) {
    const value = flags[flag];
    if (value !== undefined) given[setting] = value;
  }
  return given;
}
