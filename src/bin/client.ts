/** The commands alone, for machines that run no server: `make cli-bundle` makes one file of it. */
import { runCli } from '../cli/cli.ts';
import { systemIo } from '../cli/io.ts';

const io = Object.assign(systemIo(), { clientOnly: true });
process.exitCode = await runCli(process.argv.slice(2), io);
