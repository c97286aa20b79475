/** JSON Schema for people: a list of fields, what each is, and links to what has a name. */
import type { JsonSchema, OpenApi } from '../description/document.ts';
import { html, inlineMarkdown, type Html } from './html.ts';

const SCHEMAS = '#/components/schemas/';
/** Deeper parts are behind their names; nothing of ours is nested so far without one. */
const DEEPEST = 6;

export function resolve({ components }: OpenApi, schema: JsonSchema): JsonSchema {
  const name = nameOf(schema);
  return name === undefined ? schema : (components.schemas[name] ?? schema);
}

function nameOf({ $ref }: JsonSchema): string | undefined {
  return $ref?.startsWith(SCHEMAS) ? $ref.slice(SCHEMAS.length) : undefined;
}

/** The fields of an object; of anything else what it is. */
export function schemaView(schema: JsonSchema, depth = 0): Html {
  const inner = objectIn(schema);
  if (inner === undefined || depth > DEEPEST) return html`<p class="type">${typeView(schema)}</p>`;
  const required = new Set(inner.required);
  const fields = Object.entries(inner.properties ?? {});
  return html`<dl class="fields">
    ${fields.map(([name, field]) => fieldView(name, field, required.has(name), depth))}
  </dl>`;
}

function fieldView(name: string, schema: JsonSchema, isRequired: boolean, depth: number): Html {
  const nested = objectIn(schema);
  const about = constraintsOf(schema);
  return html`<dt>
      <code>${name}</code> <span class="type">${typeView(schema)}</span>
      ${isRequired && html`<span class="required">required</span>`}
    </dt>
    <dd>
      ${schema.description !== undefined && html`<p>${inlineMarkdown(schema.description)}</p>`}
      ${about !== '' && html`<p class="about">${about}</p>`}
      ${
        nested &&
        html`<details>
          <summary>Fields of <code>${name}</code></summary>
          ${schemaView(nested, depth + 1)}
        </details>`
      }
    </dd>`;
}

/** The object that a schema is, or holds: in a list, or unless it is null. */
function objectIn(schema: JsonSchema): JsonSchema | undefined {
  if (schema.properties) return schema;
  if (schema.items) return objectIn(schema.items);
  const objects = (schema.anyOf ?? []).filter((one) => one.properties);
  return objects.length === 1 ? objects[0] : undefined;
}

export function typeView(schema: JsonSchema): Html {
  const name = nameOf(schema);
  if (name !== undefined) return html`<a href="#schema-${name}">${name}</a>`;
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum) return joined(schema.enum.map((one) => html`<code>${String(one)}</code>`));
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return joined(choices.map(typeView));
  if (schema.items) return html`list of ${typeView(schema.items)}`;
  const { additionalProperties: values } = schema;
  if (typeof values === 'object' && !schema.properties) return html`map to ${typeView(values)}`;
  return html`${[schema.type ?? 'anything'].flat().join(' or ')}`;
}

function joined(views: Html[]): Html {
  return html`${views.map((view, at) => (at === 0 ? view : html` | ${view}`))}`;
}

const WORDS: Record<string, string> = {
  minimum: 'at least',
  maximum: 'at most',
  minLength: 'characters at least',
  maxLength: 'characters at most',
  minItems: 'entries at least',
  maxItems: 'entries at most',
  pattern: 'as',
  default: 'default',
};

export function constraintsOf(schema: JsonSchema): string {
  return Object.entries(WORDS)
    .filter(([keyword]) => schema[keyword] !== undefined && !isVast(schema[keyword]))
    .map(([keyword, words]) => `${words} ${shown(schema[keyword])}`)
    .join(', ');
}

/** What a number cannot exceed anyway is no news. */
function isVast(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) >= Number.MAX_SAFE_INTEGER;
}

function shown(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
}
