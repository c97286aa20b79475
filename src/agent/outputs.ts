/**
 * Whose output the spool sends: attempts on the machine, and those forgotten before all was sent.
 */
import { dirname, join } from 'node:path';
import type { ProcessRuntime } from './runtimes/processRuntime.ts';
import type { SpoolAttempt, SpoolSource } from './spool.ts';

export interface Outputs extends SpoolSource {
  /** The attempt's end was acknowledged; its files stay until `sent` resolves. */
  keepUntil(uid: string, sent: () => Promise<void>): Promise<void>;
}

export function spoolSource(runtime: ProcessRuntime): Outputs {
  const kept = new Set<string>();
  const outputOf = (uid: string, ended: boolean): SpoolAttempt => {
    const { stdout, stderr } = runtime.outputFiles(uid);
    const offsetsPath = join(dirname(stdout), 'sent-offsets');
    return { uid, stdoutPath: stdout, stderrPath: stderr, offsetsPath, ended };
  };
  return {
    list() {
      const outputs = runtime
        .list()
        .filter(({ observation: { uid } }) => runtime.hasFiles(uid))
        .map(({ observation: { uid, state } }) => outputOf(uid, state === 'ENDED'));
      const listed = new Set(outputs.map(({ uid }) => uid));
      const forgotten = [...kept].filter((uid) => !listed.has(uid));
      return [...outputs, ...forgotten.map((uid) => outputOf(uid, true))];
    },
    async keepUntil(uid, sent) {
      kept.add(uid);
      await sent();
      kept.delete(uid);
    },
  };
}
