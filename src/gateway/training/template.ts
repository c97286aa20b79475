/**
 * One template: a header that says what it takes, a line `---`, and a job as YAML with Nunjucks in
 * it. Every value comes in as JSON, which is YAML too: no text of a user can add a field. That is
 * why `{{ … }}` must end in `| json`, and a template in which one does not is refused.
 */
import nunjucks from 'nunjucks';
import { parse } from 'yaml';
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';
import { BLOCKS } from './blocks.ts';
import { markLines } from './templateLines.ts';

/** Named limits, each with a test. */
export const TEMPLATE_LIMITS = {
  /** A template's own file. */
  bytes: 256 * 1024,
  /** Characters of what it renders to: longer than any job that would be taken. */
  rendered: 2 * 1024 * 1024,
  /** The files that travel with a job: scripts, no data. */
  codeFiles: 200,
  codeBytes: 4 * 1024 * 1024,
} as const;

export const TEMPLATE_NAME = /^[a-z0-9][a-z0-9_-]{0,99}$/;
const name = z.string().regex(TEMPLATE_NAME, 'is no name of a template');

const header = z.strictObject({
  description: z.string().default(''),
  /** A folder beside the template whose files travel with the job as its code. */
  code: name.or(z.literal('')).default(''),
  /** The template that evaluates its checkpoints. */
  evaluation: name.or(z.literal('')).default(''),
  /** The fields it takes of a block; of a block that is not named it takes any. */
  fields: z.partialRecord(z.enum([...BLOCKS, 'evaluation']), z.array(z.string())).default({}),
});

export interface Template extends z.infer<typeof header> {
  name: string;
  /** The job as YAML, with the marks of templateLines.ts. */
  render(values: object): Rendered;
}

/** What stands in a `{{ … }}`, and where. */
interface Expression {
  text: string;
  line: number;
}

/** Throws CONFLICT where the site's file is no template. */
export function readTemplate(name: string, text: string): Template {
  const [head, body] = splitHeader(text);
  const expressions: Expression[] = [];
  const { prepared, unready } = prepare(body, expressions);
  if (unready) throw brokenTemplate(name, unready.line, unready.message);
  try {
    const said = header.parse(parse(head) ?? {});
    return { ...said, name, render: renderer(prepared, expressions) };
  } catch (error) {
    throw brokenTemplate(name, 1, `its header is not valid: ${reasonOf(error)}`, error);
  }
}

export function brokenTemplate(
  name: string,
  line: number | undefined,
  message: string,
  cause?: unknown,
): DroverError {
  const place = line === undefined ? '' : `, line ${line}`;
  return new DroverError('CONFLICT', `The template ${name}${place}: ${message}`, {
    hint: 'It is a file of the site (training.templates): ask whoever runs this server.',
    cause,
  });
}

/** Blank lines take the header's place, so that lines keep their numbers. */
function splitHeader(text: string): [head: string, body: string] {
  const found = /^---[ \t]*$/m.exec(text);
  if (!found) return ['', text];
  const end = found.index + found[0].length;
  return [
    text.slice(0, found.index),
    text.slice(0, end).replaceAll(/[^\n]/g, '') + text.slice(end),
  ];
}

const TAG = /\{\{[^]*?\}\}|\{%[^]*?%\}|\{#[^]*?#\}/g;
const FILTERED = /^(\{\{-?)([^]*)\|\s*json\s*(-?\}\})$/;
const RAW = /^\{%-?\s*(raw|verbatim)\b/;

interface Prepared {
  prepared: string;
  unready: { line: number; message: string } | undefined;
}

/** Each `| json` learns which one it is, so that what is missing can be named with its line. */
function prepare(text: string, expressions: Expression[]): Prepared {
  let unready: Prepared['unready'];
  const numbered = text.replaceAll(TAG, (tag, offset: number) => {
    const line = text.slice(0, offset).split('\n').length;
    const refuse = (message: string): string => {
      unready ??= { line, message };
      return tag;
    };
    if (RAW.test(tag)) return refuse('raw text is not possible here');
    if (!tag.startsWith('{{')) return tag;
    const [, open, inside = '', close] = FILTERED.exec(tag) ?? [];
    if (open === undefined) return refuse(`${tag} must end in "| json"`);
    const at = expressions.push({ text: inside.trim(), line }) - 1;
    // In brackets: a filter binds tighter than `a if b else c`. Line ends stay where they are.
    return `${open}(${inside})| json(${at})${close}`;
  });
  return { prepared: markLines(numbered), unready };
}

interface Rendered {
  text: string;
  /** What is wrong with the values, or with the template. */
  problem?: { line: number | undefined; message: string };
}

function renderer(body: string, expressions: Expression[]): Template['render'] {
  const environment = new nunjucks.Environment([], { autoescape: true, throwOnUndefined: true });
  let missing: Rendered['problem'];
  environment.addFilter('json', (value: unknown, at: number) => {
    const { text, line } = expressions[at]!;
    const found = textOf(value);
    if (found !== undefined) return new nunjucks.runtime.SafeString(found);
    missing = { line, message: `${text} is ${value === undefined ? 'missing' : 'no value'}` };
    throw new Error(missing.message);
  });
  const compiled = nunjucks.compile(body, environment);
  return (values) => {
    missing = undefined;
    try {
      return { text: compiled.render(values) };
    } catch (error) {
      return { text: '', problem: missing ?? readFailure(error) };
    }
  };
}

/** What YAML might take for an end of line, and the marks of lines, are written as escapes. */
const ESCAPED = /[\u007f-\u009f\u2028\u2029\ufeff\ue000\ue001]/g;

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' && !Number.isFinite(value)) return undefined;
  const plain = value instanceof nunjucks.runtime.SafeString ? String(value) : value;
  const text = JSON.stringify(plain) as string | undefined;
  return text?.replaceAll(
    ESCAPED,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const WHERE = /^((Template render error:\s*)?\(unknown path\)\s*(\[[^\]]*\])?\s*)+/;

/** Nunjucks writes "(unknown path) [Line 3, Column 5]\n  what it is". */
function readFailure(error: unknown): NonNullable<Rendered['problem']> {
  const message = reasonOf(error);
  const line = /\[Line (\d+),/.exec(message)?.[1];
  const said = message.replace(WHERE, '').trim();
  return { line: line === undefined ? undefined : Number(line), message: said };
}

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) {
    return error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
  }
  return error instanceof Error ? error.message : String(error);
}
