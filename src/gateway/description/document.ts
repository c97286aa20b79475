/** The finishing of the OpenAPI document: failures, words and only those schemas that are used. */
import { STATUS_CODES } from 'node:http';
import { failureName, failureResponses } from './failures.ts';

/** As much of a JSON Schema as is looked at here. */
export interface JsonSchema {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  additionalProperties?: boolean | JsonSchema;
  [keyword: string]: unknown;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description?: string;
  example?: unknown;
  schema: JsonSchema;
}

export interface MediaType {
  schema: JsonSchema;
  example?: unknown;
}

export interface Response {
  $ref?: string;
  description?: string;
  headers?: Record<string, { description: string; schema: JsonSchema }>;
  content?: Record<string, MediaType>;
}

export interface Operation {
  operationId: string;
  summary?: string;
  description: string;
  tags?: string[];
  security: { [scheme: string]: string[] }[];
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: Record<string, MediaType> };
  responses: Record<string, Response>;
  'x-permission': string;
}

/** What a route says for the document and the document then says in OpenAPI's own words. */
interface Unfinished extends Operation {
  'x-failures'?: number[];
  'x-reads'?: string;
}

export interface OpenApi {
  openapi: string;
  info: { title: string; version: string; description: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, JsonSchema>;
    responses: Record<string, Response>;
    securitySchemes: Record<string, unknown>;
  };
  [extension: `x-${string}`]: unknown;
}

export function finishDocument(document: OpenApi): OpenApi {
  for (const operations of Object.values(document.paths)) {
    for (const operation of Object.values(operations)) finishOperation(operation);
  }
  const used = new Set(eachOperation(document).flatMap(({ operation }) => refsOf(operation)));
  const responses = Object.entries(failureResponses()).filter(([name]) =>
    used.has(`#/components/responses/${name}`),
  );
  document.components.responses = Object.fromEntries(responses);
  return withUsedSchemas(document);
}

export function eachOperation({
  paths,
}: OpenApi): { method: string; path: string; operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
}

function finishOperation(operation: Unfinished): void {
  // The generator marks those of HEAD, also where they have a name of their own.
  operation.operationId = operation.operationId.replace(/-head$/, '');
  // A surface with failures of another shape says so once, as the default.
  const { default: own, ...responses } = operation.responses;
  operation.responses = responses;
  for (const status of operation['x-failures'] ?? []) {
    responses[status] ??= own
      ? { description: STATUS_CODES[status] ?? '', content: structuredClone(own.content ?? {}) }
      : { $ref: `#/components/responses/${failureName(status)}` };
  }
  delete operation['x-failures'];
  for (const [status, response] of Object.entries(operation.responses)) {
    // The generator's own words for "nothing was said".
    if (response.description === 'Default Response') {
      response.description = STATUS_CODES[status] ?? status;
    }
  }
  for (const parameter of operation.parameters ?? []) finishParameter(parameter);
  const reads = operation['x-reads'];
  delete operation['x-reads'];
  if (reads === undefined) return;
  const schema: JsonSchema = { type: 'string', format: 'binary' };
  // No bytes are bytes too.
  operation.requestBody = { required: false, content: { [reads]: { schema } } };
}

/** Numbers in queries: see saysOf in protocol/queries.ts. */
function finishParameter(parameter: Parameter): void {
  const { 'x-example': example, 'x-default': usual, ...schema } = parameter.schema;
  if (example !== undefined) parameter.example = example;
  parameter.schema = { ...schema, ...(usual !== undefined && { default: usual }) };
}

const SCHEMAS = '#/components/schemas/';

/**
 * Every schema with a name comes twice: as it is sent (`JobSpecInput`) and as it is answered
 * (`JobSpec`). One that is only ever sent needs no suffix.
 */
function withUsedSchemas(document: OpenApi): OpenApi {
  const { schemas, responses } = document.components;
  const used = new Set<string>();
  const look = (value: unknown): void => {
    for (const ref of refsOf(value)) {
      const name = ref.startsWith(SCHEMAS) ? ref.slice(SCHEMAS.length) : undefined;
      if (name === undefined || used.has(name)) continue;
      used.add(name);
      look(schemas[name]);
    }
  };
  look([document.paths, responses]);
  const newName = (name: string): string => {
    const plain = name.replace(/Input$/, '');
    return used.has(plain) ? name : plain;
  };
  const kept = [...used].toSorted().map((name) => [newName(name), schemas[name]]);
  document.components.schemas = Object.fromEntries(kept) as Record<string, JsonSchema>;
  return JSON.parse(JSON.stringify(document), (key, value: unknown) => {
    if (isObject(value)) return plainer(value);
    if (key !== '$ref' || typeof value !== 'string' || !value.startsWith(SCHEMAS)) return value;
    return SCHEMAS + newName(value.slice(SCHEMAS.length));
  }) as OpenApi;
}

function plainer(schema: Record<string, unknown>): Record<string, unknown> {
  if (schema['minimum'] === Number.MIN_SAFE_INTEGER) {
    // Any whole number that a JavaScript program can hold; nothing that a reader must know.
    const { minimum: _, maximum: __, ...rest } = schema;
    return rest;
  }
  const { default: usual, ...rest } = schema;
  if (!isObject(usual) || Array.isArray(usual) || !isSchema(schema)) return schema;
  // Generators of clients know defaults that are one word; others are for people.
  const { description } = schema;
  const said = typeof description === 'string' ? `${description}. ` : '';
  return { ...rest, description: `${said}Default: \`${JSON.stringify(usual)}\`` };
}

/** And not a map of properties, one of which is called `default`. */
function isSchema(value: Record<string, unknown>): boolean {
  return 'type' in value || 'anyOf' in value || 'oneOf' in value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function refsOf(value: unknown): string[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : refsOf(inner),
  );
}
