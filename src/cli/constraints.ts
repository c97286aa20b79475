/** Tests of a worker's attributes as people write them: rack=b12, disk in nvme,ssd, cuda>12. */
import type { Constraint } from '../model/placement.ts';
import { UsageError } from './args.ts';

type Parsed = Omit<Constraint, 'preferred'>;

const FORMS =
  'write rack=b12, rack!=b12, "disk in nvme,ssd", "cuda>12", "cuda<13" or exists:nvlink';
const COMPARISON = /^([^\s=!<>]+)\s*(!=|==|=|>=|<=|>|<)\s*(.*)$/;
const MEMBERSHIP = /^([^\s=!<>]+)\s+in(?:\s+(.*))?$/i;
const OPERATORS: Record<string, Constraint['operator']> = {
  '=': 'EQ',
  '==': 'EQ',
  '!=': 'NE',
  '>': 'GT',
  '<': 'LT',
};

export function parseConstraint(text: string, what: string): Parsed {
  const trimmed = text.trim();
  const presence = /^exists:\s*([^\s=!<>]+)$/i.exec(trimmed);
  if (presence) return { attribute: presence[1]!, operator: 'EXISTS', values: [] };
  const membership = MEMBERSHIP.exec(trimmed);
  if (membership) return parseMembership(text, what, membership[1]!, membership[2] ?? '');
  const comparison = COMPARISON.exec(trimmed);
  if (!comparison) throw new UsageError(`${what} ${JSON.stringify(text)} is no constraint`, FORMS);
  const [, attribute, sign, value] = comparison as unknown as [string, string, string, string];
  if (value === '') throw new UsageError(`${what} ${JSON.stringify(text)} names no value`, FORMS);
  const operator = OPERATORS[sign];
  if (!operator) throw orEqual(text, what, attribute, sign, value);
  if ((operator === 'GT' || operator === 'LT') && !Number.isFinite(Number(value))) {
    throw new UsageError(
      `${what} ${JSON.stringify(text)}: ${sign} compares numbers, ${JSON.stringify(value)} is none`,
    );
  }
  return { attribute, operator, values: [value] };
}

function parseMembership(text: string, what: string, attribute: string, list: string): Parsed {
  const values = list.split(',').map((value) => value.trim());
  if (values.every((value) => value !== '')) return { attribute, operator: 'IN', values };
  const problem = list === '' ? 'names no value' : 'has an empty value';
  throw new UsageError(`${what} ${JSON.stringify(text)} ${problem}`, FORMS);
}

/** The next value is not ours to guess: 12 may stand before 12.1 or before 13. */
function orEqual(
  text: string,
  what: string,
  attribute: string,
  sign: string,
  value: string,
): UsageError {
  return new UsageError(
    `${what} ${JSON.stringify(text)}: there is no ${sign}`,
    `write "${attribute}${sign[0]}N" with N just ${sign === '>=' ? 'below' : 'above'} ${value}`,
  );
}

/** As it could be typed again. */
export function showConstraint({ attribute, operator, values }: Constraint): string {
  if (operator === 'EXISTS') return `exists:${attribute}`;
  if (operator === 'IN') return `${attribute} in ${values.join(',')}`;
  const sign = { EQ: '=', NE: '!=', GT: '>', LT: '<' }[operator];
  return `${attribute}${sign}${values[0] ?? ''}`;
}
