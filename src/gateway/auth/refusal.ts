/** Why a token is not taken. Nothing of the token itself is ever repeated. */
import { DroverError } from '../../lib/errors.ts';

export function refused(why: string, hint?: string): DroverError {
  return new DroverError('UNAUTHENTICATED', `The token was refused: ${why}`, {
    hint: hint ?? 'Get a new token from your identity provider, and log in with that.',
  });
}
