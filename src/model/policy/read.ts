/** Reads a policy file; every complaint names the line, the key and what fits. */
import { isNode, LineCounter, parseDocument, type Document } from 'yaml';
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';
import { nearest } from '../../lib/nearest.ts';
import { POLICY_LIMITS, policySchema, type Policy } from './schema.ts';

type Path = readonly PropertyKey[];

/** Throws DroverError with all that is wrong. An empty file is a policy that says nothing. */
export function readPolicy(file: string, text: string): Policy {
  const bytes = Buffer.byteLength(text);
  if (bytes > POLICY_LIMITS.fileBytes) {
    throw wrong(file, [`is ${bytes} bytes, the limit is ${POLICY_LIMITS.fileBytes}`]);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    const told = document.errors.map(
      ({ pos, message }) => `line ${lines.linePos(pos[0]).line}: ${message}`,
    );
    throw wrong(file, told);
  }
  const parsed = policySchema.safeParse(contentOf(file, document));
  if (parsed.success) return parsed.data;
  throw wrong(
    file,
    parsed.error.issues.flatMap((issue) =>
      complaints(issue).map(({ path, message }) => `${placeOf(document, lines, path)}: ${message}`),
    ),
  );
}

function wrong(file: string, problems: string[]): DroverError {
  const shown = problems.slice(0, SHOWN_PROBLEMS);
  if (problems.length > shown.length) shown.push(`… and ${problems.length - shown.length} more`);
  return new DroverError(
    'INVALID_ARGUMENT',
    `The policy ${file} does not fit:\n  ${shown.join('\n  ')}`,
    { hint: 'Correct it; deploy/policy.example.yaml shows every key.' },
  );
}

const SHOWN_PROBLEMS = 50;

/** YAML's aliases may unfold to more than fits into memory; the parser counts them. */
function contentOf(file: string, document: Document.Parsed): unknown {
  try {
    return (document.toJS() as unknown) ?? {};
  } catch (error) {
    throw wrong(file, [(error as Error).message]);
  }
}

interface Complaint {
  path: Path;
  message: string;
}

function complaints(issue: z.core.$ZodIssue): Complaint[] {
  if (issue.code !== 'unrecognized_keys') return [{ path: issue.path, message: issue.message }];
  const known = keysAt(policySchema, issue.path);
  return issue.keys.map((key) => {
    const guess = nearest(key, known);
    const meant =
      guess === undefined ? `; there are: ${known.join(', ')}` : `; did you mean ${guess}?`;
    return { path: [...issue.path, key], message: `there is no such key${meant}` };
  });
}

/** The keys that the schema knows where a path leads. */
function keysAt(schema: z.core.$ZodType, path: Path): string[] {
  let here: z.core.$ZodType | undefined = schema;
  for (const step of path) {
    here = here && unwrap(here);
    if (here instanceof z.ZodArray) here = here.element;
    else if (here instanceof z.ZodObject) here = here.shape[String(step)] as z.core.$ZodType;
  }
  here = here && unwrap(here);
  return here instanceof z.ZodObject ? Object.keys(here.shape) : [];
}

/** The schema within defaults and the like. */
function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  let inner = schema;
  while (
    inner instanceof z.ZodDefault ||
    inner instanceof z.ZodPrefault ||
    inner instanceof z.ZodOptional
  ) {
    inner = inner.unwrap();
  }
  return inner;
}

/** `line 7, rules[2].require.images`. A key that is missing has the line of what lacks it. */
function placeOf(document: Document.Parsed, lines: LineCounter, path: Path): string {
  let name = '';
  for (const step of path) name += typeof step === 'number' ? `[${step}]` : `.${String(step)}`;
  for (let length = path.length; length >= 0; length--) {
    const node = document.getIn(path.slice(0, length), true);
    const offset = isNode(node) ? node.range?.[0] : undefined;
    if (offset === undefined) continue;
    const line = `line ${lines.linePos(offset).line}`;
    return name === '' ? line : `${line}, ${name.replace(/^\./, '')}`;
  }
  return name.replace(/^\./, '') || 'it';
}
