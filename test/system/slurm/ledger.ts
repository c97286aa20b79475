/**
 * A file to which tasks write when they begin and when they are done, so that a test can say of
 * each that it ran, that it was done once, and that no two attempts ran at the same time.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

interface LedgerLine {
  task: string;
  /** `twice`: it began while another attempt still ran. */
  what: 'begin' | 'done' | 'twice';
  uid: string;
  /** As CUDA_VISIBLE_DEVICES says. */
  devices: string;
}

export interface Ledger {
  /** A command that works for so long. */
  command(seconds: number): string[];
  lines(): LedgerLine[];
  of(job: string, what: LedgerLine['what']): LedgerLine[];
  /**
   * Throws unless each of these jobs' tasks was done and none ran beside itself. One may have been
   * done twice where its machine was gone before it could say so.
   */
  check(jobs: readonly { id: string; tasks: number }[]): void;
}

/** The lock goes with its process, however that ends; what it starts must not hold it. */
const SCRIPT = `
task=\${DROVER_ATTEMPT_UID%.*.*}
tell() { echo "$task $1 $DROVER_ATTEMPT_UID \${CUDA_VISIBLE_DEVICES-}" >>"$LEDGER/lines"; }
exec 9>>"$LEDGER/$task.lock"
flock -n 9 || tell twice
tell begin
sleep "$0" 9>&-
tell done
`;

export function createLedger(folder: string): Ledger {
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'lines');
  writeFileSync(file, '');
  const lines = (): LedgerLine[] =>
    readFileSync(file, 'utf8').split('\n').filter(Boolean).map(read);
  const of = (job: string, what: LedgerLine['what']): LedgerLine[] =>
    lines().filter((line) => line.what === what && line.task.startsWith(`${job}.`));
  return {
    command: (seconds) => ['sh', '-c', SCRIPT.replaceAll('$LEDGER', folder), String(seconds)],
    lines,
    of,
    check(jobs) {
      const problems = lines()
        .filter(({ what }) => what === 'twice')
        .map(({ uid }) => `${uid} began while another attempt ran`);
      for (const { id, tasks } of jobs) {
        const done = new Set(of(id, 'done').map(({ task }) => task)).size;
        if (done !== tasks) problems.push(`${id}: ${done} of ${tasks} tasks were done`);
      }
      if (problems.length > 0) throw new Error(problems.join('\n'));
    },
  };
}

function read(line: string): LedgerLine {
  const [task = '', what, uid = '', devices = ''] = line.split(' ');
  return { task, what: what as LedgerLine['what'], uid, devices };
}
