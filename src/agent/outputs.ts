/**
 * Whose output and metrics the spool sends: attempts on the machine, and those forgotten before all
 * was sent.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { METRICS_FILE, SYSTEM_METRICS_FILE } from '../model/metric.ts';
import type { ProcessRuntime } from './runtimes/processRuntime.ts';
import { spoolKey, type SpoolAttempt, type SpoolSource } from './spool.ts';

export interface Outputs extends SpoolSource {
  /** The attempt's end was acknowledged; its files stay until `sent` resolves for each key. */
  keepUntil(uid: string, sent: (key: string) => Promise<void>): Promise<void>;
  /** Looks whether a running attempt has metrics by now; true when that is news. */
  lookForMetrics(uid: string): boolean;
}

export function spoolSource(runtime: ProcessRuntime): Outputs {
  const kept = new Set<string>();
  /** Whether an attempt has metrics: looked for now and then while it runs, once when it ended. */
  const measured = new Map<string, boolean>();
  const outputOf = (uid: string, ended: boolean): SpoolAttempt => {
    const { stdout, stderr } = runtime.outputFiles(uid);
    const offsetsPath = join(dirname(stdout), 'sent-offsets');
    return { uid, stdoutPath: stdout, stderrPath: stderr, offsetsPath, ended };
  };
  const metricsOf = (uid: string, ended: boolean): SpoolAttempt => {
    const home = dirname(runtime.outputFiles(uid).stdout);
    return {
      ...{ uid, ended, metrics: true },
      stdoutPath: join(home, METRICS_FILE),
      stderrPath: join(home, SYSTEM_METRICS_FILE),
      offsetsPath: join(home, 'sent-metrics-offsets'),
    };
  };
  const look = (uid: string, ended: boolean): boolean => {
    const { stdoutPath, stderrPath } = metricsOf(uid, ended);
    const found = existsSync(stdoutPath) || existsSync(stderrPath);
    // Of what runs only a yes is final.
    if (found || ended) measured.set(uid, found);
    return found;
  };
  const hasMetrics = (uid: string, ended: boolean): boolean =>
    measured.get(uid) ?? (ended && look(uid, ended));
  const allOf = (uid: string, ended: boolean): SpoolAttempt[] => {
    const output = outputOf(uid, ended);
    return hasMetrics(uid, ended) ? [output, metricsOf(uid, ended)] : [output];
  };
  return {
    list() {
      const outputs = runtime
        .list()
        .filter(({ observation: { uid } }) => runtime.hasFiles(uid))
        .flatMap(({ observation: { uid, state } }) => allOf(uid, state === 'ENDED'));
      const listed = new Set(outputs.map(({ uid }) => uid));
      const forgotten = [...kept].filter((uid) => !listed.has(uid));
      return [...outputs, ...forgotten.flatMap((uid) => allOf(uid, true))];
    },
    lookForMetrics: (uid) => !measured.get(uid) && look(uid, false),
    async keepUntil(uid, sent) {
      kept.add(uid);
      await Promise.all(allOf(uid, true).map((one) => sent(spoolKey(one))));
      kept.delete(uid);
      measured.delete(uid);
    },
  };
}
