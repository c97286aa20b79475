/** The site's policy from its file: read at the start, and again whenever it changes. */
import { readFileSync } from 'node:fs';
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import { watchFile } from '../lib/watchFile.ts';
import type { Policy } from '../model/policy/schema.ts';
import { NO_POLICY, type PolicySource } from '../protocol/policy.ts';

/** How soon a changed file is in force. */
const LOOK_MS = 1000;

export interface OpenPolicy extends PolicySource {
  close(): void;
}

/** Throws where the file is wrong: nobody starts a server without the rules he wrote for it. */
export async function openPolicy(
  file: string,
  { clock, log }: { clock: Clock; log: Log },
): Promise<OpenPolicy> {
  if (file === '') return { ...NO_POLICY, close: () => undefined };
  const { readPolicy } = await reader();
  let text = readText(file);
  let policy: Policy = readPolicy(file, text);
  let loadedAtMs = clock.now();
  let problem: string | null = null;
  const keep = (error: Error): void => {
    problem = error.message;
    log.error({ file, problem }, 'the policy cannot be used: what was in force stays so');
  };
  const watch = watchFile(
    {
      path: file,
      clock,
      periodMs: LOOK_MS,
      onUnreadable: keep,
      onChange(changed) {
        try {
          policy = readPolicy(file, changed);
        } catch (error) {
          return keep(error as Error);
        }
        text = changed;
        loadedAtMs = clock.now();
        problem = null;
        log.info({ file, rules: policy.rules.length }, 'the policy has changed');
      },
    },
    text,
  );
  return {
    current: () => policy,
    view: () => ({ text, loadedAtMs, problem }),
    close: () => watch.close(),
  };
}

/** The same without the watching: whether it can be used. */
export async function checkPolicyFile(file: string): Promise<void> {
  if (file === '') return;
  const { readPolicy } = await reader();
  readPolicy(file, readText(file));
}

/** Loaded where there is a file only: most starts need neither YAML nor the schema. */
const reader = () => import('../model/policy/read.ts');

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const detail = `policy.file names ${file}, which cannot be read`;
    const hint = 'Check that it exists and that this user may read it.';
    throw new DroverError('INVALID_ARGUMENT', detail, { hint, cause: error });
  }
}
