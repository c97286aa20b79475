/** Why a role cannot go on: for a person, or under `drover up` as a line of its log. */
import { reportError } from '../cli/errors.ts';
import { systemIo } from '../cli/io.ts';
import { DroverError } from '../lib/errors.ts';
import { createLog } from '../lib/log.ts';

export async function tellFailure(role: string, error: unknown): Promise<void> {
  if (!process.send) return reportError(systemIo(), error, { command: role, json: false });
  const log = createLog(role);
  if (error instanceof DroverError) {
    log.error({ code: error.code, try: error.hint }, error.message);
  } else {
    log.error({ err: error }, 'it ended by an error nobody expected');
  }
}
