/** The one executable: roles that run, and the commands that talk to them. */
import { runCli } from '../cli/cli.ts';
import { systemIo } from '../cli/io.ts';
import { runRole } from './roles.ts';

const [name = '', ...args] = process.argv.slice(2);
process.exitCode = (await runRole(name, args)) ?? (await runCli(process.argv.slice(2), systemIo()));
