/** For tests: callers, jobs with everything filled in, and what a policy says to them. */
import { jobSpec, type SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import type { JobSpec } from '../../src/model/job.ts';
import { scopesOf } from '../../src/model/roles.ts';
import { evaluatorFor, type Explained } from '../../src/model/policy/evaluate.ts';
import type { Who } from '../../src/model/policy/match.ts';
import { readPolicy } from '../../src/model/policy/read.ts';

export const ADA: Who = { tenant: 'vision', user: 'ada', scopes: scopesOf(['user']) };
export const BOB: Who = { tenant: 'guest-7', user: 'bob', scopes: scopesOf(['user']) };
export const BOSS: Who = { tenant: 'vision', user: 'boss', scopes: scopesOf(['operator']) };
export const HASH = 'a'.repeat(64);

export const job = (more: Partial<SubmittedSpec> = {}): JobSpec =>
  jobSpec.parse({ command: ['true'], ...more });
export const explain = (
  text: string,
  spec: JobSpec,
  who = ADA,
  pools: string[] | null = null,
): Explained =>
  evaluatorFor(readPolicy('p', text), who, pools && new Set(pools))?.explain(spec) ?? {
    ...{ spec, violations: [], filled: [], avoided: [], narrowed: [], rules: [] },
  };
export const rule = (demand: string, more = ''): string =>
  `rules:\n  - name: r\n${more}    require: ${demand}\n`;
export const broken = (text: string, spec: Partial<SubmittedSpec>, who: Who = ADA): string[] =>
  explain(text, job(spec), who).violations.map(({ what }) => what);
