/** OpenAPI 3.1 from the routes' own schemas, with the scope each needs. */
import swagger from '@fastify/swagger';
import type { FastifySchema } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Access, App } from './app.ts';

export const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.string(),
    detail: z.string(),
    requestId: z.string(),
    hint: z.string().optional(),
    violations: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Problem' });

const failure = {
  description: 'What went wrong and what to try',
  content: { 'application/problem+json': { schema: problem } },
};

export async function describeApi(app: App, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Drover', version, description: 'One control plane for every GPU.' },
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: 'A token of `drover tokens`. Each operation lists the scope it needs.',
          },
        },
      },
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
}

/** What every operation has in common: who may call it, and the shape of its failures. */
export function describeRoute(schema: FastifySchema | undefined, access: Access): FastifySchema {
  if (schema === undefined || access === 'agent') return { ...schema, hide: true };
  const response = { default: failure, ...(schema.response as object | undefined) };
  return { ...schema, security: securityOf(access), response };
}

function securityOf(access: Access): { [scheme: string]: readonly string[] }[] {
  if (access === 'open' || access === 'agent') return [];
  if (access === 'loopback') return [{}, { bearer: ['fleet:read'] }];
  return [{ bearer: [access] }];
}
