/** The roles: processes that stay. Everything else is a command. */
import { AGENT_FLAGS, AGENT_ROLE } from './agentRole.ts';
import { CONNECTOR_ROLE } from './connectorRole.ts';
import type { Role } from './role.ts';

const SERVER_FLAGS = { data: 'data.dir', host: 'server.host', port: 'server.port' };

const ROLES: Record<string, Role> = {
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
  agent: AGENT_ROLE,
  connector: CONNECTOR_ROLE,
};

export function roleOf(name: string): Role | undefined {
  return Object.hasOwn(ROLES, name) ? ROLES[name] : undefined;
}
