/** drover info: which cluster this talks to, and how it is. */
import { defineCommand, takePositionals } from './command.ts';
import { shortDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { printFacts } from './facts.ts';

export const infoCommand = defineCommand({
  name: 'info',
  summary: 'Show the cluster: version, workers, tasks',
  usage: ['info', 'cluster'],
  options: {},
  async run(parsed, context) {
    takePositionals(parsed, []);
    const { url, source } = context.connection();
    const cluster = await context.client().cluster();
    if (context.json) {
      await context.printJson({ url, ...cluster });
      return EXIT.ok;
    }
    const { workers, tasks } = cluster;
    await printFacts(context, [
      ['cluster', cluster.name ? `${cluster.name} (${cluster.id})` : cluster.id],
      ['url', `${url} (from ${source})`],
      ['version', cluster.version],
      ['store', cluster.store],
      ['up', shortDuration(context.io.now() - cluster.startedAtMs)],
      [
        'workers',
        `${workers.online} online, ${workers.suspect} suspect, ${workers.draining} draining`,
      ],
      ['tasks', `${tasks.pending} pending, ${tasks.assigned} assigned, ${tasks.running} running`],
      ['attempt lease', shortDuration(cluster.attemptLeaseMs)],
      ['insecure', cluster.insecure ? 'yes: tokens cross the network readable' : ''],
    ]);
    return EXIT.ok;
  },
});
