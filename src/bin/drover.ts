/** The executable. */
import { runCli } from '../cli/cli.ts';
import { systemIo } from '../cli/io.ts';

process.exitCode = await runCli(process.argv.slice(2), systemIo());
