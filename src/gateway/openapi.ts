/** OpenAPI 3.1 from the routes' own schemas, with the permission each needs and how it can fail. */
import swagger from '@fastify/swagger';
import type { FastifySchema, RouteOptions } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { assert } from '../lib/errors.ts';
import type { Access, App } from './app.ts';
import { finishDocument, type OpenApi } from './description/document.ts';
import { failuresOf } from './description/failures.ts';
import { permissionWords, securityOf } from './description/permission.ts';
import { API_WORDS, TAGS } from './description/words.ts';

export const problem = z
  .object({
    type: z.string().describe('Always about:blank; `code` says what it is'),
    title: z.string().describe('The same for every problem with this code'),
    status: z.int().describe('The HTTP status'),
    code: z.string().describe('For programs: docs/errors.md lists them. New ones may come'),
    detail: z.string().describe('What happened, and with which value'),
    requestId: z.string().describe('Names this call in the logs'),
    hint: z.string().optional().describe('What to try next'),
    violations: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .describe('What does not fit the schema, and where'),
  })
  .meta({ id: 'Problem' });

/** A connection that becomes another protocol: OpenAPI has no words for it. */
export interface UpgradeDescription {
  path: string;
  permission: string;
  summary: string;
}

interface HiddenRoute {
  method: string;
  path: string;
  permission: Access;
}

export class ApiDescription {
  readonly #version: string;
  readonly #upgrades: () => readonly UpgradeDescription[];
  /** Spoken by agents and by pages of tasks: named, not described. */
  readonly #hidden: HiddenRoute[] = [];

  constructor(version: string, upgrades: () => readonly UpgradeDescription[]) {
    this.#version = version;
    this.#upgrades = upgrades;
  }

  async register(app: App): Promise<void> {
    const { title, description, license } = API_WORDS;
    await app.register(swagger, {
      openapi: {
        openapi: '3.1.0',
        info: { title, version: this.#version, description, license },
        servers: [{ url: '/', description: 'This gateway' }],
        tags: TAGS.map((tag) => ({ ...tag })),
        components: {
          securitySchemes: {
            bearer: { type: 'http', scheme: 'bearer', description: API_WORDS.bearer },
          },
        },
      },
      transform: jsonSchemaTransform,
      transformObject: (all) =>
        finishDocument(jsonSchemaTransformObject(all) as unknown as OpenApi) as never,
    });
  }

  /** The whole document; the routes are all known by then. */
  document(app: App): OpenApi {
    return {
      ...(app.swagger() as unknown as OpenApi),
      'x-websockets': this.#upgrades().map(({ path, permission, summary }) => ({
        ...{ path, summary },
        'x-permission': permission,
      })),
      'x-other-routes': this.#hidden.map(({ method, path, permission }) => ({
        ...{ method, path },
        'x-permission': permission,
      })),
    };
  }

  /** What every operation has in common: its name, who may call it, and how it can fail. */
  describe(route: RouteOptions): FastifySchema {
    const { schema, url } = route;
    const { access, orAttempt = false, failures = [], reads } = route.config ?? {};
    const method = String(route.method);
    assert(access, `the route ${url} does not say who may call it`);
    if (schema === undefined || schema.hide || access === 'agent') {
      const path = url.replaceAll(/:(\w+)/g, '{$1}');
      this.#hidden.push({ method, path, permission: access });
      return { ...schema, hide: true };
    }
    const said = schema.description === undefined ? '' : `${schema.description}\n\n`;
    const bytes = reads !== undefined && !schema.body ? { 'x-reads': reads } : {};
    const extensions = {
      ...bytes,
      'x-permission': access,
      'x-failures': failuresOf({ method, access, failures, takes: schema }),
    };
    return {
      ...schema,
      ...extensions,
      operationId: schema.operationId ?? operationIdOf(method, url),
      description: said + permissionWords(access, orAttempt),
      security: securityOf(access),
    };
  }
}

/** `GET /v1/jobs/:id/tasks` is getJobsByIdTasks, where nobody gave it a better name. */
function operationIdOf(method: string, url: string): string {
  const words = url
    .split(/[/.]/)
    .filter((part) => part !== '' && !/^v\d+$/.test(part))
    .map((part) => (part.startsWith(':') ? `by-${part.slice(1)}` : part));
  const camel = words
    .join('-')
    .replaceAll(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
  return method.toLowerCase() + camel;
}
