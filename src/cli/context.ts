/** drover context: which of the remembered servers is spoken to. */
import { UsageError } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { isReadable, READABLE } from './connection.ts';
import { listContexts, removeContext, useContext, type Context } from './contexts.ts';
import { EXIT } from './exitCodes.ts';
import { printTable } from './table.ts';

export const contextCommand = defineCommand({
  name: 'context',
  summary: 'List the servers of `drover login`, choose one, forget one',
  usage: ['context [ls]', 'context use NAME', 'context rm NAME'],
  options: {},
  details:
    'A name is given by `drover login URL --name NAME`; without one it is the host.\n' +
    'DROVER_CONTEXT=NAME chooses for one command.',
  async run(parsed, context) {
    const [verb = 'ls'] = parsed.positionals;
    const { env } = context.io;
    if (verb === 'ls') {
      takePositionals(parsed, parsed.positionals.slice(0, 1));
      return list(context);
    }
    if (verb !== 'use' && verb !== 'rm') {
      throw new UsageError(`there is no context ${verb}`, 'ls, use NAME or rm NAME');
    }
    const [, name] = takePositionals(parsed, [verb, 'NAME']);
    const changed = verb === 'use' ? useContext(env, name!) : removeContext(env, name!);
    if (context.json) await context.printJson(view(changed));
    else
      await context.print(verb === 'use' ? `now ${changed.name} at ${changed.url}` : 'forgotten');
    if (verb === 'use' && (env['DROVER_URL'] || env['DROVER_CONTEXT'])) {
      await context.notice('DROVER_URL or DROVER_CONTEXT is set and goes before it');
    }
    return EXIT.ok;
  },
});

/** Never with the token. */
function view({ name, url, current }: Context): Omit<Context, 'token' | 'tls'> {
  return { name, url, current };
}

async function list(context: CommandContext): Promise<number> {
  const all = listContexts(context.io.env).map(view);
  for (const { name, url } of all) {
    if (isReadable(url)) await context.notice(`${name} at ${url}: ${READABLE}`);
  }
  if (context.json) {
    await context.printJson(all);
  } else if (all.length === 0) {
    await context.notice('no server is remembered: drover login URL');
  } else {
    await printTable(context.io, all, [
      { title: '', value: ({ current }) => (current ? '*' : '') },
      { title: 'NAME', value: ({ name }) => name },
      { title: 'URL', value: ({ url }) => url },
    ]);
  }
  return EXIT.ok;
}
