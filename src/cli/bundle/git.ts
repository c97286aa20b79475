/** Which commit a folder is of, and how it differs from it: part of what a job is kept with. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** A larger difference is left out: it is a record for people, the bundle has the files. */
const DIFF_BYTES = 16 * 2 ** 20;
const GIT_MS = 30_000;

export interface Commit {
  /** Empty: the folder is of no repository, or of one without a commit. */
  commit: string;
  /** What the tracked files of the folder differ by; undefined when that is too much to keep. */
  diff: string | undefined;
}

export async function commitOf(folder: string): Promise<Commit> {
  const commit = (await git(folder, ['rev-parse', '--verify', '-q', 'HEAD']))?.trim() ?? '';
  if (!commit) return { commit: '', diff: '' };
  const plain = ['--no-ext-diff', '--no-textconv', '--no-color', '--binary', '--relative'];
  const diff = await git(folder, ['diff', ...plain, 'HEAD', '--', '.']);
  return { commit, diff };
}

/** Undefined where git is not installed, refuses, takes too long or says too much. */
async function git(folder: string, args: string[]): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)('git', ['-C', folder, ...args], {
      // No lock of the user's repository is taken, and no pager or prompt waits for anybody.
      env: { ...process.env, GIT_OPTIONAL_LOCKS: '0', GIT_TERMINAL_PROMPT: '0' },
      maxBuffer: DIFF_BYTES,
      timeout: GIT_MS,
    });
    return stdout;
  } catch {
    // A record that cannot be had holds no job up; that there is none is shown with the job.
    return undefined;
  }
}
