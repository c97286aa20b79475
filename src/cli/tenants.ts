/** drover tenants: who shares the cluster, and shutting one out. */
import type { TenantView } from '../protocol/tenants.ts';
import { UsageError, type OptionTable } from './args.ts';
import { defineCommand, takePositionals } from './command.ts';
import { ago } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { printList } from './paging.ts';
import type { Column } from './table.ts';

const options = {
  suspend: { kind: 'flag', help: 'set: nobody of it comes in; what runs goes on' },
  note: { kind: 'text', value: 'TEXT', help: 'set: what others should know of it' },
} as const satisfies OptionTable;

export const tenantsCommand = defineCommand({
  name: 'tenants',
  summary: 'List tenants, make one, or suspend it',
  usage: ['tenants', 'tenants set NAME [--suspend] [--note TEXT]'],
  options,
  details:
    'Making one needs the scope tenants:manage, and nothing else: the first token for it is\n' +
    'made with `drover tokens create --tenant NAME --user U --role user`. Without --suspend a\n' +
    'tenant that was suspended is let in again.',
  async run(parsed, context) {
    const [verb, ...positionals] = parsed.positionals;
    const nowMs = context.io.now();
    const client = context.client();
    if (verb === 'set') {
      const [name] = takePositionals({ positionals, rest: parsed.rest }, ['NAME']);
      const { suspend: suspended, note = '' } = parsed.options;
      const view = await client.setTenant(name!, { suspended, note });
      if (context.json) await context.printJson(view);
      else await printList(context, { items: [view], more: false }, columns(nowMs), '');
      return EXIT.ok;
    }
    if (verb !== undefined) {
      throw new UsageError(`drover tenants ${verb} is not known`, 'drover tenants set NAME');
    }
    const items = await client.listTenants();
    await printList(context, { items, more: false }, columns(nowMs), 'no tenants');
    return EXIT.ok;
  },
});

function columns(nowMs: number): Column<TenantView>[] {
  return [
    { title: 'TENANT', value: ({ name }) => name },
    { title: 'STATE', value: ({ suspended }) => (suspended ? 'suspended' : 'open') },
    { title: 'USERS', value: ({ users }) => String(users) },
    { title: 'LIVE JOBS', value: ({ liveJobs }) => String(liveJobs) },
    {
      title: 'MADE',
      value: ({ createdAtMs }) => (createdAtMs === null ? '-' : ago(createdAtMs, nowMs)),
    },
    { title: 'NOTE', value: ({ note }) => note || '-' },
  ];
}
