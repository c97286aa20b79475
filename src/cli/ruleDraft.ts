/** What a job may know, do and tell: secrets, jobs of its own, channels, a name others have. */
import { NAME_RULES, NOTICES } from '../model/jobParts.ts';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { oneOf, UsageError, type OptionTable } from './args.ts';
import { parseDuration } from './durations.ts';
import { asText } from './values.ts';

type Secret = NonNullable<SubmittedSpec['secrets']>[number];
type NotifyRule = NonNullable<NonNullable<SubmittedSpec['rules']>['notify']>[number];
type Reader = (spec: SubmittedSpec, value: unknown, what: string) => void;

export const ruleOptions = {
  secret: {
    kind: 'list',
    value: 'NAME[=VAR|=file:F]',
    help: 'a secret as the variable VAR, or the file $DROVER_SECRETS/F',
  },
  'may-submit': { kind: 'flag', help: 'give it a token, so that it can submit jobs' },
  'outlive-parent': { kind: 'flag', help: 'go on when the job that submitted it ends' },
  'idle-warn': { kind: 'text', value: 'D', help: 'say so when its devices idle so long' },
  'idle-stop': { kind: 'text', value: 'D', help: 'stop it when its devices idle so long' },
  'idle-below': { kind: 'text', value: 'P', help: 'idle is below so many percent (default 5)' },
  notify: {
    kind: 'list',
    value: 'CHANNEL[:ON]',
    help: 'tell a channel when it started, interrupted, failed, done, idle (default failed,done)',
  },
  'if-named': {
    kind: 'text',
    value: 'RULE',
    help: 'where its name is taken: allow (default), error, keep or replace',
  },
} as const satisfies OptionTable;

export const RULE_READERS: Record<string, Reader> = {
  secret(spec, value, what) {
    const texts = Array.isArray(value) ? value : [value];
    spec.secrets = texts.map((text) => secretOf(asText(text, what), what));
  },
  maySubmit: (spec, value) => (rules(spec).maySubmit = value === true),
  outliveParent: (spec, value) => (rules(spec).outliveParent = value === true),
  idleWarn: (spec, value, what) => readIdle(spec, { action: 'warn' }, value, what),
  idleStop: (spec, value, what) => readIdle(spec, { action: 'stop' }, value, what),
  idleBelow(spec, value, what) {
    const belowPercent = Number(asText(value, what).replace(/%$/, ''));
    if (!(belowPercent >= 0 && belowPercent <= 100)) {
      throw new UsageError(`${what} is a percentage from 0 to 100`);
    }
    rules(spec).idle = { ...rules(spec).idle, belowPercent };
  },
  notify(spec, value, what) {
    const told: unknown[] = Array.isArray(value) ? value : [value];
    rules(spec).notify = told.map((rule) => notifyOf(rule, what));
  },
  ifNamed: (spec, value, what) =>
    (rules(spec).nameTaken = oneOf(asText(value, what), NAME_RULES, what)),
};

function readIdle(
  spec: SubmittedSpec,
  rule: { action: 'warn' | 'stop' },
  value: unknown,
  what: string,
): void {
  const forMs = parseDuration(asText(value, what), what);
  rules(spec).idle = { ...rules(spec).idle, ...rule, forMs };
}

function secretOf(text: string, what: string): Secret {
  const at = text.indexOf('=');
  const name = at < 0 ? text : text.slice(0, at);
  const target = at < 0 ? '' : text.slice(at + 1);
  if (name === '' || (at >= 0 && target === '')) {
    throw new UsageError(`${what} ${JSON.stringify(text)} names no secret or no place for it`);
  }
  return target.startsWith('file:')
    ? { name, as: 'file', target: target.slice('file:'.length) }
    : { name, as: 'env', target };
}

/** `CHANNEL`, `CHANNEL:started,failed`, or in a file `{to, on}`. */
function notifyOf(rule: unknown, what: string): NotifyRule {
  if (typeof rule === 'object' && rule !== null) return rule as NotifyRule;
  const text = asText(rule, what);
  const at = text.indexOf(':');
  const to = at < 0 ? text : text.slice(0, at);
  if (to === '') throw new UsageError(`${what} ${JSON.stringify(text)} names no channel`);
  if (at < 0) return { to };
  const on = text.slice(at + 1).split(',');
  return { to, on: on.map((word) => oneOf(word.trim(), NOTICES, what)) };
}

function rules(spec: SubmittedSpec): NonNullable<SubmittedSpec['rules']> {
  return (spec.rules ??= {});
}
