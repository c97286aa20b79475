/** Unknown paths are 404; known paths under another method 405 with what is allowed. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DroverError } from '../lib/errors.ts';

export class KnownPaths {
  readonly #methods = new Map<string, Set<string>>();

  add(method: string, pattern: string): void {
    const methods = this.#methods.get(pattern) ?? new Set();
    methods.add(method);
    this.#methods.set(pattern, methods);
  }

  /** Empty where no route has this path; one without parameters goes before those with. */
  methodsOf(path: string): string[] {
    const exact = this.#methods.get(path);
    if (exact) return [...exact].toSorted();
    const methods = new Set<string>();
    for (const [pattern, known] of this.#methods) {
      if (matches(pattern, path)) for (const method of known) methods.add(method);
    }
    return [...methods].toSorted();
  }

  refusal(request: FastifyRequest, reply: FastifyReply): DroverError {
    const path = request.url.split('?', 1)[0] ?? '';
    const allowed = this.methodsOf(path);
    if (allowed.length === 0) {
      return new DroverError('NOT_FOUND', `There is nothing at ${path}`, {
        hint: 'GET /openapi.json lists every path.',
      });
    }
    reply.header('allow', allowed.join(', '));
    return new DroverError('METHOD_NOT_ALLOWED', `${request.method} is not possible at ${path}`, {
      hint: `Possible here: ${allowed.join(', ')}.`,
    });
  }
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return false;
  return wanted.every((part, i) => (part.startsWith(':') ? given[i] !== '' : part === given[i]));
}
