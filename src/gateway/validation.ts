/** Zod behind Fastify: what does not fit is a 400 that names the field and the nearest one. */
import type { FastifySchemaCompiler } from 'fastify';
import type { FastifyRouteSchemaDef } from 'fastify/types/schema.js';
import type { z } from 'zod';
import { DroverError } from '../lib/errors.ts';
import { nearest } from '../lib/nearest.ts';
import { InvalidRequest, type Violation } from './problem.ts';

/** So many violations are listed; a batch of 1,000 wrong jobs is told about its first ones. */
const VIOLATIONS_LISTED = 10;
/** A name longer than this is not repeated back whole. */
const NAME_SHOWN = 100;

export const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  return (data: unknown) => {
    const result = schema.safeParse(data);
    // Headers are checked, not replaced by what a schema leaves of them.
    if (result.success) return httpPart === 'headers' ? true : { value: result.data };
    // What cannot be an id names nothing.
    if (httpPart === 'params') return { error: new DroverError('NOT_FOUND', 'No such address') };
    return { error: invalidRequest(result.error.issues, schema, httpPart ?? 'body') };
  };
};

/** `quick` may see at once that a body is right; all others the schema decides. */
export function bodyValidator<Schema>(
  quick: (body: unknown) => object | null,
): FastifySchemaCompiler<Schema> {
  return (route) => {
    // Fastify gives a route's own compiler the part it is for, but types it as the whole schema.
    const whole = validatorCompiler(route as unknown as FastifyRouteSchemaDef<z.ZodType>);
    if (route.httpPart !== 'body') return whole;
    return (body: unknown) => {
      const value = quick(body);
      return value ? { value } : whole(body);
    };
  };
}

function invalidRequest(
  issues: z.core.$ZodIssue[],
  schema: z.ZodType,
  part: string,
): InvalidRequest {
  const hints: string[] = [];
  const violations: Violation[] = [];
  for (const issue of issues.slice(0, VIOLATIONS_LISTED)) {
    const at = issue.path.map(String);
    if (issue.code !== 'unrecognized_keys') {
      violations.push({ path: at.join('.'), message: issue.message });
      continue;
    }
    for (const key of issue.keys) {
      const shown = key.slice(0, NAME_SHOWN);
      violations.push({ path: [...at, shown].join('.'), message: 'is not a known field' });
      const meant = nearest(shown, fieldsAt(schema, at));
      if (meant) hints.push(`Did you mean ${meant} instead of ${shown}?`);
    }
  }
  const more = issues.length - VIOLATIONS_LISTED;
  const sentences = violations.map(({ path, message }) => `${path || `the ${part}`}: ${message}`);
  if (more > 0) sentences.push(`and ${more} more`);
  return new InvalidRequest(sentences.join('; '), violations, hints.join(' ') || undefined);
}

/** What the search for a field's neighbours needs to know of a schema, by its kind. */
interface Definition {
  innerType?: Described;
  shape?: Record<string, Described>;
  element?: Described;
  valueType?: Described;
  options?: Described[];
}
interface Described {
  def: unknown;
}

/** The fields known at a path of a schema. Several where the schema is a choice. */
function fieldsAt(schema: Described, path: readonly string[]): string[] {
  const { innerType, shape, element, valueType, options } = schema.def as Definition;
  const [first, ...rest] = path;
  if (innerType) return fieldsAt(innerType, path);
  if (options) return options.flatMap((option) => fieldsAt(option, path));
  if (shape && first === undefined) return Object.keys(shape);
  const next = shape ? shape[first ?? ''] : (element ?? valueType);
  return next ? fieldsAt(next, rest) : [];
}
