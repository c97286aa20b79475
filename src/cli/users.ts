/** drover users: who is in the tenant, which roles he has, and leaving. */
import { LEAVING_JOBS, type UserView } from '../protocol/tenants.ts';
import { oneOf, UsageError, type OptionTable } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { ago } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { printList } from './paging.ts';
import type { Column } from './table.ts';

const options = {
  role: { kind: 'list', value: 'R', help: 'set: viewer, user, operator, admin, or a scope' },
  jobs: {
    kind: 'text',
    value: 'J',
    help: 'leave: keep or cancel his jobs (default: as the policy says)',
  },
} as const satisfies OptionTable;

export const usersCommand = defineCommand({
  name: 'users',
  summary: 'List the users of your tenant, give them roles, or let one leave',
  usage: ['users', 'users set NAME [--role R]…', 'users leave NAME [--jobs keep|cancel]'],
  options,
  details:
    'Roles given here come on top of those that an issuer gives. Leaving ends every token of\n' +
    'the user at once, and no issuer lets him in again until `drover users set NAME`.',
  async run(parsed, context) {
    const [verb, ...positionals] = parsed.positionals;
    const rest = { positionals, rest: parsed.rest };
    const { role, jobs } = parsed.options;
    if (verb === 'set') {
      const [name] = takePositionals(rest, ['NAME']);
      return show(context, await context.client().setUser(name!, { roles: role }));
    }
    if (verb === 'leave') {
      const [name] = takePositionals(rest, ['NAME']);
      const kept = jobs === undefined ? undefined : oneOf(jobs, LEAVING_JOBS, '--jobs');
      return show(context, await context.client().removeUser(name!, kept));
    }
    if (verb !== undefined) {
      throw new UsageError(`drover users ${verb} is not known`, 'drover users set, or leave');
    }
    const items = await context.client().listUsers();
    await printList(context, { items, more: false }, columns(context.io.now()), 'no users');
    return EXIT.ok;
  },
});

async function show(context: CommandContext, user: UserView): Promise<number> {
  if (context.json) await context.printJson(user);
  else await printList(context, { items: [user], more: false }, columns(context.io.now()), '');
  return EXIT.ok;
}

function columns(nowMs: number): Column<UserView>[] {
  return [
    { title: 'USER', value: ({ name }) => name },
    {
      title: 'STATE',
      value: ({ leftAtMs }) => (leftAtMs === null ? 'in' : `left ${ago(leftAtMs, nowMs)}`),
    },
    { title: 'ROLES', value: ({ roles }) => roles.join(' ') || '-' },
    { title: 'TOKENS', value: ({ tokens }) => String(tokens) },
    { title: 'LIVE JOBS', value: ({ liveJobs }) => String(liveJobs) },
  ];
}
