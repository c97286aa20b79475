/** drover gateway-key: makes API keys for the key file of a gateway that stands alone. */
import { stringify } from 'yaml';
import { systemRandom } from '../lib/random.ts';
import { ROLE_NAMES } from '../model/roles.ts';
import { gatewayKeyEntry, hashGatewayKey, newGatewayKey } from '../model/gatewayKey.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals } from './command.ts';
import { parseDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';

export const gatewayKeyCommand = defineCommand({
  name: 'gateway-key',
  summary: "Make an API key for a gateway's key file",
  usage: ['gateway-key create --tenant T --user U --role R… [--id ID] [--expires D]'],
  options: {
    tenant: { kind: 'text', value: 'T', help: 'whose jobs it sees' },
    user: { kind: 'text', value: 'U', help: 'who holds it' },
    role: { kind: 'list', value: 'R', help: `${ROLE_NAMES.join(', ')}, or a scope` },
    id: { kind: 'text', value: 'ID', help: 'how lists and logs call it (else made up)' },
    expires: { kind: 'text', value: 'D', help: 'valid this long: 30d' },
  },
  details:
    'No server is asked and nothing is written: the key is shown once, and below it the entry ' +
    'for the file that auth.keyFile names. The entry holds only a hash.',
  async run(parsed, context) {
    const [verb] = takePositionals(parsed, ['create']);
    if (verb !== 'create') {
      throw new UsageError(`unknown: gateway-key ${verb}`, 'drover gateway-key create');
    }
    const { tenant, user, role, id, expires } = parsed.options;
    if (tenant === undefined || user === undefined || role.length === 0) {
      throw new UsageError('--tenant, --user and --role are needed', HOW);
    }
    const key = newGatewayKey(systemRandom);
    const entry = gatewayKeyEntry.safeParse({
      id: id ?? `k${systemRandom.hex(4)}`,
      hash: hashGatewayKey(key),
      tenant,
      user,
      roles: role,
      ...(expires !== undefined && {
        expires: new Date(context.io.now() + parseDuration(expires, '--expires')).toISOString(),
      }),
    });
    if (!entry.success) {
      const [first] = entry.error.issues;
      const flag = String(first?.path[0]).replace('roles', 'role');
      throw new UsageError(`--${flag} ${first?.message}`, HOW);
    }
    if (context.json) {
      await context.printJson({ key, entry: entry.data });
      return EXIT.ok;
    }
    await context.print(key);
    await context.notice('this key is shown only this once; add to the key file:');
    await context.print(stringify([entry.data]).trimEnd());
    return EXIT.ok;
  },
});

const HOW = 'drover gateway-key create --tenant physics --user ada --role user';
