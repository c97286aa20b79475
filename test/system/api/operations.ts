/** The operations of the description as calls that a test can make. */
import {
  eachOperation,
  type MediaType,
  type OpenApi,
  type Operation,
} from '../../../src/gateway/description/document.ts';
import { bodyExample } from '../../../src/gateway/reference/curl.ts';
import type { Things } from './world.ts';

export interface TestOperation {
  method: string;
  path: string;
  operation: Operation;
  permission: string;
  /** `GET /v1/jobs/{id}`, for messages. */
  name: string;
}

export function operationsOf(document: OpenApi): TestOperation[] {
  return eachOperation(document).map((place) => ({
    ...place,
    permission: place.operation['x-permission'],
    name: `${place.method} ${place.path}`,
  }));
}

/** Whose thing a parameter names, by the path up to it; the longest that fits counts. */
const PARAMETERS: Record<string, keyof Things> = {
  '/v1/jobs/{id}': 'endedJob',
  '/v1/modules/scaimind/jobs/{id}': 'endedJob',
  '/v1/modules/scaimind/evaluations/{id}': 'evaluation',
  '/v1/tokens/{id}': 'token',
  '/v1/workers/{id}': 'worker',
  '/v1/pools/{pool}': 'pool',
  '/v1/instances/{id}': 'instance',
  '/v1/blobs/{hash}': 'blob',
  '/v1/data/{name}': 'data',
  '/v1/tenants/{tenant}': 'tenant',
  '/v1/users/{user}': 'user',
  '/v1/budgets/{tenant}': 'tenant',
  '/v1/budgets/{tenant}/users/{user}': 'user',
};
const WHERE = 'test/system/api/operations.ts';

/** The path with alpha's things in it; throws where nobody said which thing a parameter is. */
export function filledPath({ path, name }: TestOperation, things: Things): string {
  let upTo = '';
  const parts = path.split('/').slice(1);
  return parts
    .map((part) => {
      upTo += `/${part}`;
      if (!part.startsWith('{')) return part;
      const thing = PARAMETERS[upTo];
      if (thing !== undefined && things[thing]) return encodeURIComponent(things[thing]);
      throw new Error(
        `${name}: nobody says what ${part} names. Make one in tenant alpha (makeThings in ` +
          `test/system/api/world.ts) and add '${upTo}' to PARAMETERS in ${WHERE}.`,
      );
    })
    .reduce((whole, part) => `${whole}/${part}`, '');
}

/** The documented example of the body; undefined where it takes none. */
export function exampleBody(document: OpenApi, { operation, name }: TestOperation): unknown {
  const media: MediaType | undefined = operation.requestBody?.content['application/json'];
  if (media === undefined) return undefined;
  const example = bodyExample(document, media);
  if (example !== undefined) return example;
  throw new Error(
    `${name}: its body has no example. Add .meta({ examples: [...] }) to its schema.`,
  );
}
