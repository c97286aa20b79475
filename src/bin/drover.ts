/** The one executable: roles that run, and the commands that talk to them. */
import type { SimulationRequest } from '../protocol/simulation.ts';

const [name = '', ...args] = process.argv.slice(2);
// Each loads what it needs and no more: a command is over in the time the other half would take.
if (['up', 'controller', 'gateway', 'agent', 'connector'].includes(name)) {
  const [{ roleOf }, { runRole }] = await Promise.all([import('./roles.ts'), import('./role.ts')]);
  const role = roleOf(name);
  // A role has closed its parts by hand; whatever else would keep the process alive must not.
  if (role) process.exit(await runRole(name, role, args));
}
const { runCli } = await import('../cli/cli.ts');
const { systemIo } = await import('../cli/io.ts');
const io = Object.assign(systemIo(), {
  // Loaded when it is asked for: other commands start without it.
  simulate: async (request: SimulationRequest) => (await import('./simulate.ts')).simulate(request),
});
process.exitCode = await runCli(process.argv.slice(2), io);
