/** The one executable: roles that run, and the commands that talk to them. */
import { runCli } from '../cli/cli.ts';
import { systemIo } from '../cli/io.ts';
import type { SimulationRequest } from '../protocol/simulation.ts';
import { isRole, runRole } from './roles.ts';

const [name = '', ...args] = process.argv.slice(2);
// A role has closed its parts by hand; whatever else would keep the process alive must not.
if (isRole(name)) process.exit(await runRole(name, args));
const io = Object.assign(systemIo(), {
  // Loaded when it is asked for: other commands start without it.
  simulate: async (request: SimulationRequest) => (await import('./simulate.ts')).simulate(request),
});
process.exitCode = await runCli(process.argv.slice(2), io);
