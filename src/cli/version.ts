/** drover version: of this command line and the Node it runs on. */
import { defineCommand, takePositionals } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { clientVersion } from './versionNumber.ts';

export const versionCommand = defineCommand({
  name: 'version',
  summary: "Print the version of this program (`drover info` has the server's)",
  usage: ['version'],
  options: {},
  async run(parsed, context) {
    takePositionals(parsed, []);
    const version = clientVersion();
    if (context.json) await context.printJson({ version, node: process.versions.node });
    else await context.print(`drover ${version}`);
    return EXIT.ok;
  },
});
