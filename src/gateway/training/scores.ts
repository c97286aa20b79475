/** The scores that an evaluation left: `scores.json` in the result of its job. */
import { buffer } from 'node:stream/consumers';
import type { BlobStore } from '../../blobs/contract.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import type { JobView } from '../../protocol/jobs.ts';
import { findResult, readManifest } from '../rest/results.ts';
import { objectIn, type Block } from './blocks.ts';

const SCORES_FILE = 'scores.json';
/** Numbers for people; tables and curves are files of the result. */
export const SCORES_BYTES = 256 * 1024;

export interface Scores {
  scores: Block | null;
  scores_error: string | null;
}

export interface ScoreQuestion {
  coordinator: Coordinator;
  store: BlobStore;
  who: Principal;
  job: JobView;
}

export async function readScores({ coordinator, store, who, job }: ScoreQuestion): Promise<Scores> {
  if (job.endedAtMs === null) return { scores: null, scores_error: null };
  const attempt = await findResult(coordinator, who, job.id, 0);
  if (!attempt?.result) return without('it left no result');
  try {
    const { files } = await readManifest(store, who.tenant, attempt.result);
    const file = files.find(({ path }) => path === SCORES_FILE);
    if (!file) return without(`its result has no ${SCORES_FILE}`);
    if (file.size > SCORES_BYTES) {
      return without(`${SCORES_FILE} has ${file.size} bytes, the limit is ${SCORES_BYTES}`);
    }
    const scores = objectIn((await buffer(await store.open(who.tenant, file.hash))).toString());
    return scores ? { scores, scores_error: null } : without(`${SCORES_FILE} is no JSON object`);
  } catch (error) {
    // Blobs can be removed; what cannot be read at the moment is not "none".
    if (error instanceof DroverError && error.code === 'NOT_FOUND') {
      return without('its result was removed');
    }
    throw error;
  }
}

function without(scores_error: string): Scores {
  return { scores: null, scores_error };
}
