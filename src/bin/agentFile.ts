/**
 * The agent alone, for machines without Node: `make agent-bundle` makes one executable of it. Its
 * one thread runs the same code (see threads/start.ts).
 */
import { isMainThread } from 'node:worker_threads';
import { AGENT_VERSION } from '../protocol/agent.ts';
import { AGENT_ROLE } from './agentRole.ts';
import { CONNECTOR_ROLE } from './connectorRole.ts';
import { runRole } from './role.ts';

if (isMainThread) void main(process.argv.slice(2));
else void import('./threads/spool.ts');

async function main([first, ...rest]: string[]): Promise<void> {
  if (first === '--version') {
    process.stdout.write(`${AGENT_VERSION}\n`);
    return;
  }
  // For login nodes, which have no Node either.
  if (first === 'connector') process.exit(await runRole('connector', CONNECTOR_ROLE, rest));
  // As `drover agent` is called elsewhere.
  const args = first === undefined || first === 'agent' ? rest : [first, ...rest];
  // Its parts are closed by hand; whatever else would keep the process alive must not.
  process.exit(await runRole('agent', AGENT_ROLE, args));
}
