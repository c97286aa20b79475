/** How JSON bodies are read: once, hashed where a key asks for it, refused where they lie. */
import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { DroverError } from '../lib/errors.ts';
import type { App } from './app.ts';

export function readJsonBodies(app: App): void {
  // Fastify would also read text/plain; here that is a 415.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    (request, body, done) => {
      try {
        const value = parseJson(body);
        if (request.headers['idempotency-key'] !== undefined) {
          request.bodyHash = hash('sha256', body, 'hex');
        }
        done(null, value);
      } catch (error) {
        done(error as Error);
      }
    },
  );
}

/** Undefined for an empty body: what needs none takes that, everything else says what it wants. */
function parseJson(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  // Decoding would put U+FFFD in place of what was sent and run another command than was meant.
  if (!isUtf8(body)) throw new DroverError('MALFORMED_BODY', 'The body is not valid UTF-8');
  const text = body.toString('utf8');
  try {
    // Only a text that might hold the key pays for the search; "\u005f" is an underscore.
    const suspicious = text.includes('__proto__') || text.includes('\\u005');
    return suspicious ? JSON.parse(text, refuseProto) : JSON.parse(text);
  } catch (error) {
    if (error instanceof DroverError) throw error;
    const detail = `The body is not valid JSON: ${(error as Error).message}`;
    throw new DroverError('MALFORMED_BODY', detail, { cause: error });
  }
}

/** A schema's record would drop this key without a word; half a job is worse than none. */
function refuseProto(key: string, value: unknown): unknown {
  if (key !== '__proto__') return value;
  throw new DroverError('INVALID_ARGUMENT', 'A field may not be called __proto__');
}
