/** Files as users write them, checked by a schema: every complaint says where and what fits. */
import { parse } from 'yaml';
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';
import { nearest } from '../../lib/nearest.ts';
import type { NamedText } from '../../protocol/simulation.ts';

export function parseYaml({ name, text }: NamedText): unknown {
  try {
    return parse(text, { prettyErrors: true }) as unknown;
  } catch (error) {
    const [first = 'bad YAML'] = (error as Error).message.split('\n');
    throw badFile(name, [first.replace(/:$/, '')], error);
  }
}

/** Throws with every problem at once. */
export function checked<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  file: string,
): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw badFile(
    file,
    parsed.error.issues.flatMap((issue) => complaints(issue, schema)),
  );
}

export function badFile(name: string, problems: string[], cause?: unknown): DroverError {
  return new DroverError('INVALID_ARGUMENT', `${name} does not fit:\n${problems.join('\n')}`, {
    hint: 'Correct the file; docs/simulate.md lists what it may hold.',
    cause,
  });
}

/** Runs a reader of a single value; what it refuses is said with its place. */
export function readAt<Value>(where: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const { hint } = error as { hint?: string };
    throw new ReadProblem(`${where}: ${error.message}${hint ? ` (${hint})` : ''}`, error);
  }
}

/** One thing that is wrong in a file, with its place. */
export class ReadProblem extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'ReadProblem';
  }
}

function complaints(issue: z.core.$ZodIssue, schema: z.ZodType): string[] {
  const place = pathText(issue.path);
  if (issue.code !== 'unrecognized_keys') return [`${place}: ${issue.message}`];
  const known = keysAt(schema, issue.path);
  return issue.keys.map((key) => {
    const guess = nearest(key, known);
    const meant =
      guess === undefined ? `; known are ${known.join(', ')}` : `; did you mean ${guess}?`;
    return `${place}: there is no key ${JSON.stringify(key)}${meant}`;
  });
}

/** `pools.a100.workers[0]`. */
function pathText(path: readonly PropertyKey[]): string {
  const text = path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('');
  return text === '' ? 'the file' : text.replace(/^\./, '');
}

/** The keys that an object at this place may have. */
function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const inner = unwrap(schema);
  const [first, ...rest] = path;
  if (inner instanceof z.ZodPipe) return keysAt(inner.out, path);
  if (inner instanceof z.ZodUnion) {
    return inner.options.flatMap((option) => keysAt(option, path));
  }
  if (inner instanceof z.ZodObject) {
    if (first === undefined) return Object.keys(inner.shape);
    const next = inner.shape[String(first)] as z.core.$ZodType | undefined;
    return next ? keysAt(next, rest) : [];
  }
  if (first === undefined) return [];
  if (inner instanceof z.ZodArray) return keysAt(inner.element, rest);
  if (inner instanceof z.ZodRecord) return keysAt(inner.valueType, rest);
  return [];
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  let inner = schema;
  while (
    inner instanceof z.ZodDefault ||
    inner instanceof z.ZodPrefault ||
    inner instanceof z.ZodOptional ||
    inner instanceof z.ZodNullable
  ) {
    inner = inner.unwrap();
  }
  return inner;
}
