/** drover tokens: who may call, and which machines may join. */
import { ROLE_NAMES } from '../model/roles.ts';
import { SCOPES, type Scope } from '../model/token.ts';
import type { CreateToken, TokenView } from '../protocol/fleet.ts';
import { oneOf, UsageError, wholeNumber } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { ago, parseDuration, shortDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { nearest } from '../lib/nearest.ts';
import { fetchList, pagingOptions, printList } from './paging.ts';
import type { Column } from './table.ts';

/** The third kind is made for running jobs, by the server. */
const CREATED_KINDS = ['user', 'join'] as const;

const VERBS = ['list', 'create', 'revoke'];

export const tokensCommand = defineCommand({
  name: 'tokens',
  summary: 'List, create and revoke tokens',
  usage: [
    'tokens [list] [--limit N | --all]',
    'tokens create [--name N] [--user U] [--tenant T] [--role R]… [--scope S]… [--expires D]',
    'tokens create --kind join [--pool P] [--max-workers N] [--expires D]',
    'tokens revoke ID…',
  ],
  options: {
    kind: { kind: 'text', value: 'KIND', help: 'user (default), or join: for an agent' },
    name: { kind: 'text', value: 'N', help: 'create: what it is for' },
    user: { kind: 'text', value: 'U', help: 'create: whose it is' },
    tenant: { kind: 'text', value: 'T', help: 'create: of which tenant (needs tenants:manage)' },
    role: { kind: 'list', value: 'R', help: `create: ${ROLE_NAMES.join(', ')}` },
    scope: { kind: 'list', value: 'S', help: `create: ${SCOPES.join(', ')}` },
    pool: { kind: 'text', value: 'P', help: 'create, join: the pool an agent joins' },
    'max-workers': { kind: 'text', value: 'N', help: 'create, join: live workers at most' },
    expires: { kind: 'text', value: 'D', help: 'create: valid this long: 30d' },
    ...pagingOptions,
  },
  details: 'The secret is shown once, on stdout, when the token is created.',
  async run(parsed, context) {
    const [verb = 'list', ...ids] = parsed.positionals;
    if (verb === 'create') {
      takePositionals(parsed, ['create']);
      return create(context, creationBody(parsed.options));
    }
    if (verb === 'revoke') return revoke(context, ids);
    if (verb !== 'list') {
      const close = nearest(verb, VERBS);
      throw new UsageError(`unknown: tokens ${verb}`, close && `drover tokens ${close}`);
    }
    if (ids.length > 0) throw new UsageError(`unexpected argument ${JSON.stringify(ids[0])}`);
    const client = context.client();
    const listed = await fetchList(parsed.options, (page) => client.listTokens(page));
    const whenEmpty = 'no tokens; try: drover tokens create --name laptop';
    await printList(context, listed, columns(context.io.now()), whenEmpty);
    return EXIT.ok;
  },
});

interface CreationFlags {
  kind: string | undefined;
  name: string | undefined;
  user: string | undefined;
  tenant: string | undefined;
  role: string[];
  scope: string[];
  pool: string | undefined;
  'max-workers': string | undefined;
  expires: string | undefined;
}

function creationBody(flags: CreationFlags): Partial<CreateToken> {
  const body: Partial<CreateToken> = {};
  if (flags.kind !== undefined) body.kind = oneOf(flags.kind, CREATED_KINDS, '--kind');
  if (flags.name !== undefined) body.name = flags.name;
  if (flags.user !== undefined) body.user = flags.user;
  if (flags.tenant !== undefined) body.tenant = flags.tenant;
  if (flags.pool !== undefined) body.pool = flags.pool;
  if (flags.role.length > 0) {
    body.roles = flags.role.map((role) => oneOf(role, ROLE_NAMES, '--role'));
  }
  if (flags.scope.length > 0) {
    body.scopes = flags.scope.map((scope) => oneOf<Scope>(scope, SCOPES, '--scope'));
  }
  if (flags['max-workers'] !== undefined) {
    body.maxLiveWorkers = wholeNumber(flags['max-workers'], '--max-workers');
  }
  if (flags.expires !== undefined) body.expiresInMs = parseDuration(flags.expires, '--expires');
  return body;
}

async function create(context: CommandContext, body: Partial<CreateToken>): Promise<number> {
  const token = await context.client().createToken(body);
  if (context.json) {
    await context.printJson(token);
    return EXIT.ok;
  }
  await context.print(token.secret ?? '');
  const use =
    token.kind === 'join'
      ? `drover agent --join ${context.connection().url} TOKEN`
      : `DROVER_TOKEN=TOKEN, or drover login ${context.connection().url}`;
  await context.notice(`token ${token.id}, shown only this once; use: ${use}`);
  if (token.kind === 'join') {
    const script = new URL('install/join.sh', context.connection().url);
    await context.notice(
      `or, where Drover is not installed: curl -fsS ${script.href} | DROVER_JOIN_TOKEN=TOKEN sh`,
    );
  }
  return EXIT.ok;
}

async function revoke(context: CommandContext, ids: string[]): Promise<number> {
  if (ids.length === 0) throw new UsageError('ID is missing', 'drover tokens lists them');
  const client = context.client();
  for (const id of ids) {
    const token = await client.revokeToken(id);
    await (context.json ? context.printJson(token) : context.print(`${id} revoked`));
  }
  return EXIT.ok;
}

function columns(nowMs: number): Column<TokenView>[] {
  return [
    { title: 'ID', value: (token) => token.id },
    { title: 'KIND', value: (token) => token.kind },
    { title: 'NAME', value: (token) => token.name || '-' },
    { title: 'USER', value: (token) => token.user },
    { title: 'STATE', value: (token) => tokenState(token, nowMs) },
    { title: 'CREATED', value: (token) => ago(token.createdAtMs, nowMs) },
    {
      title: 'USED',
      value: ({ lastUsedAtMs }) => (lastUsedAtMs === null ? '-' : ago(lastUsedAtMs, nowMs)),
    },
    {
      title: 'SCOPES',
      value: (token) => (token.kind === 'join' ? `pool ${token.pool}` : token.scopes.join(' ')),
    },
  ];
}

function tokenState(token: TokenView, nowMs: number): string {
  if (token.revokedAtMs !== null) return 'revoked';
  if (token.expiresAtMs === null) return 'valid';
  const leftMs = token.expiresAtMs - nowMs;
  return leftMs <= 0 ? 'expired' : `valid ${shortDuration(leftMs)}`;
}
