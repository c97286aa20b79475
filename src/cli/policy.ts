/** drover policy: the site's rules, and what they would say to a job. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { JobSpec } from '../model/job.ts';
import type { Explained } from '../model/policy/evaluate.ts';
import type { Policy } from '../model/policy/schema.ts';
import { scopesOf } from '../model/roles.ts';
import type { Principal } from '../model/token.ts';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { HAS_SCHEME } from './inputDraft.ts';
import { readSpecs } from './submit.ts';
import { printable } from './table.ts';

type Who = Pick<Principal, 'tenant' | 'user' | 'scopes'>;

export const policyCommand = defineCommand({
  name: 'policy',
  summary: "Show the site's rules for jobs, or try a job against them",
  usage: ['policy show', 'policy test -f JOB.yaml --as TENANT/USER [--role R] [--policy FILE]'],
  options: {
    file: { kind: 'text', short: 'f', value: 'FILE', help: 'the jobs, as for submit; - is stdin' },
    as: { kind: 'text', value: 'TENANT/USER', help: 'whose jobs they would be' },
    role: { kind: 'list', value: 'ROLE', help: 'a role or scope of theirs (default: user)' },
    policy: {
      kind: 'text',
      value: 'FILE',
      help: "a policy file of this machine, not the server's",
    },
  },
  details:
    "The server's policy is for holders of the scope fleet:manage. `test` sends no job: it says\n" +
    'what would be filled in and which rules look at each; exits with 1 if one is refused.\n' +
    'docs/policy.md describes the file.',
  async run(parsed, context) {
    const [what] = takePositionals(parsed, ['show or test']);
    if (what === 'show') return show(context);
    if (what !== 'test') throw new UsageError(`policy ${what}?`, 'drover policy show, or test');
    const { file, as, role, policy } = parsed.options;
    if (file === undefined) throw new UsageError('-f FILE is missing');
    if (as === undefined) throw new UsageError('--as TENANT/USER is missing');
    const who = whoOf(as, role);
    const specs = await readSpecs(context, file);
    return test(context, await policyOf(context, policy), who, await wholeSpecs(specs));
  },
});

async function show(context: CommandContext): Promise<number> {
  const view = await context.client().policy();
  if (context.json) await context.printJson(view);
  else if (view.text === '') await context.notice('there is no policy; the setting is policy.file');
  else await context.print(view.text.trimEnd());
  if (view.problem !== null)
    await context.notice(`not in force is what it holds now: ${view.problem}`);
  return EXIT.ok;
}

function whoOf(as: string, roles: string[]): Who {
  const [, tenant, user] = /^([^/]+)\/(.+)$/s.exec(as) ?? [];
  if (!tenant || !user) throw new UsageError(`--as ${JSON.stringify(as)} is not TENANT/USER`);
  const unknown = roles.find((role) => scopesOf([role]).length === 0);
  if (unknown !== undefined) throw new UsageError(`--role ${unknown} is no role and no scope`);
  return { tenant, user, scopes: scopesOf(roles.length > 0 ? roles : ['user']) };
}

async function policyOf(context: CommandContext, file: string | undefined): Promise<Policy> {
  const { readPolicy } = await import('../model/policy/read.ts');
  if (file === undefined)
    return readPolicy('of the server', (await context.client().policy()).text);
  const local = path.resolve(context.io.cwd, file);
  try {
    return readPolicy(file, readFileSync(local, 'utf8'));
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** As they would arrive: what lies on this machine is sent along, and has no name there. */
async function wholeSpecs(specs: readonly SubmittedSpec[]): Promise<JobSpec[]> {
  const { jobSpec } = await import('../protocol/jobSpec.ts');
  return specs.map((spec) => {
    const workdir = spec.workdir?.startsWith('/') ? spec.workdir : '';
    const inputs = spec.inputs?.map((input) =>
      HAS_SCHEME.test(input.uri) ? input : { ...input, uri: SENT_ALONG },
    );
    const parsed = jobSpec.safeParse({ ...spec, workdir, inputs });
    if (parsed.success) return parsed.data;
    const { path: place = [], message = '' } = parsed.error.issues[0] ?? {};
    throw new UsageError(`${place.join('.')}: ${message}`);
  });
}

const SENT_ALONG = `blob:sha256:${'0'.repeat(64)}`;

async function test(
  context: CommandContext,
  policy: Policy,
  who: Who,
  specs: readonly JobSpec[],
): Promise<number> {
  const { evaluatorFor } = await import('../model/policy/evaluate.ts');
  const evaluator = evaluatorFor(policy, who, null);
  const untouched = { violations: [], filled: [], avoided: [], narrowed: [], rules: [] };
  const found = specs.map((spec) => evaluator?.explain(spec) ?? { ...untouched, spec });
  if (context.json) await context.printJson(found);
  else await context.print(found.flatMap(linesOf).join('\n'));
  return found.some(({ violations }) => violations.length > 0) ? EXIT.failed : EXIT.ok;
}

function linesOf({ spec, filled, narrowed, rules, avoided, violations }: Explained): string[] {
  const refused = violations.length > 0;
  const lines = [`${spec.name || spec.command[0]}: ${refused ? 'refused' : 'accepted'}`];
  for (const { what, value, from } of filled) lines.push(`  ${what} = ${value} (default ${from})`);
  for (const { operator, values } of narrowed) {
    lines.push(`  ${operator === 'NE' ? 'not in pool' : 'only in pools'} ${values.join(', ')}`);
  }
  for (const rule of rules.toSorted()) {
    const broken = violations.filter((violation) => violation.rule === rule);
    const around = avoided.find((violation) => violation.rule === rule);
    if (around && broken.length === 0) lines.push(`  rule ${rule}: avoided; ${around.what}`);
    else if (broken.length === 0) lines.push(`  rule ${rule}: kept`);
    for (const { what, because } of broken) {
      lines.push(`  rule ${rule}: ${what}${because && ` (${because})`}`);
    }
  }
  return lines.map(printable);
}
