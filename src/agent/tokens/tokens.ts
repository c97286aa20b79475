/**
 * Tokens of other services for an attempt: files that only the task's user can read, replaced whole
 * before they run out, masked in its output and gone with its end.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, Timer } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { AttemptTokens } from '../../protocol/agent.ts';
import type { Step } from '../around.ts';
import { Unprepared, type Started } from '../runtimes/around.ts';
import { masksOf, TOKEN_MASKS_FILE } from '../secrets/masks.ts';

/** In an attempt's directory. */
const FOLDER = 'tokens';
const UNFINISHED = 'token.new';
/** A renewal that failed is tried again after this long, twice that, and so on. */
const FIRST_RETRY_MS = 1000;
export const LONGEST_RETRY_MS = 60_000;
/** The newest; older ones have run out, and the output need not hide them any more. */
export const MOST_MASKED = 32;

export interface TokenStepOptions {
  fetchTokens: (uid: string) => Promise<AttemptTokens>;
  clock: Clock;
  log: Log;
}

export function tokenStep(options: TokenStepOptions): Step {
  const { fetchTokens, clock } = options;
  /** When those that this agent prepared are due; it renews what an earlier one did at once. */
  const dueBootMs = new Map<string, number>();
  return {
    needsPreparation: ({ downstream }) => downstream === true,
    async prepare({ order, stage, home, task, say }) {
      say('fetching tokens of other services');
      const got = await fetchOrRefuse(fetchTokens, order.uid);
      mkdirSync(join(stage, FOLDER), { mode: 0o700 });
      write(stage, got.tokens);
      task.env['DROVER_TOKENS'] = join(home, FOLDER);
      dueBootMs.set(order.uid, clock.bootMs() + got.renewInMs);
    },
    watch(started) {
      const { uid, downstream } = started.order;
      if (!downstream) return undefined;
      const firstMs = (dueBootMs.get(uid) ?? 0) - clock.bootMs();
      dueBootMs.delete(uid);
      return renew(options, started, Math.max(0, firstMs));
    },
    needsFinish: ({ downstream }) => downstream === true,
    async finish({ order, home }) {
      dueBootMs.delete(order.uid);
      rmSync(join(home, FOLDER), { recursive: true, force: true });
      rmSync(join(home, UNFINISHED), { force: true });
      return {};
    },
  };
}

/** A refusal fails the job; a server that is away is not its fault, nor the machine's. */
async function fetchOrRefuse(
  fetchTokens: TokenStepOptions['fetchTokens'],
  uid: string,
): Promise<AttemptTokens> {
  try {
    return await fetchTokens(uid);
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof DroverError && error.code === 'PERMISSION_DENIED') {
      throw new Unprepared(message, { cause: error });
    }
    const detail = `its tokens could not be fetched: ${message}`;
    throw new Unprepared(detail, { hostFault: true, cause: error });
  }
}

/** Goes on for as long as the attempt does, whatever fails: the controller decides about that. */
function renew(
  { fetchTokens, clock, log }: TokenStepOptions,
  { order, home }: Started,
  firstMs: number,
): () => void {
  let timer: Timer = clock.setTimer(firstMs, () => void next());
  let ended = false;
  let failures = 0;

  async function next(): Promise<void> {
    let delayMs: number;
    try {
      const { tokens, renewInMs } = await fetchTokens(order.uid);
      if (ended) return;
      write(home, tokens);
      failures = 0;
      delayMs = renewInMs;
    } catch (error) {
      if (ended) return;
      delayMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures++, 10));
      const problem = (error as Error).message;
      log.warn({ attempt: order.uid, delayMs, problem }, 'tokens not renewed; trying again');
    }
    timer = clock.setTimer(delayMs, () => void next());
  }

  return () => {
    ended = true;
    timer.cancel();
  };
}

/**
 * The mask first: what the attempt can read must be known to whoever sends its output. The list is
 * there from the start, empty or not, so that it is looked at.
 */
function write(home: string, tokens: AttemptTokens['tokens']): void {
  mask(home, tokens);
  for (const { audience, token } of tokens) {
    if (!isFileName(audience)) throw new Error(`${JSON.stringify(audience)} is no file's name`);
    replace(home, join(home, FOLDER, audience), token);
  }
}

/** Names come from the settings of the controller, and become parts of a path. */
function isFileName(name: string): boolean {
  return /^[a-z0-9][a-z0-9_-]{0,62}$/.test(name);
}

function mask(home: string, tokens: AttemptTokens['tokens']): void {
  const path = join(home, TOKEN_MASKS_FILE);
  const known = readMasked(path);
  for (const { token } of tokens) {
    if (!known.includes(token)) known.unshift(...masksOf([token]));
  }
  replace(home, path, JSON.stringify(known.slice(0, MOST_MASKED)));
}

function readMasked(path: string): string[] {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as string[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** Made outside the folder that the attempt sees: there a file is whole or not there. */
function replace(home: string, path: string, content: string): void {
  const temporary = join(home, UNFINISHED);
  writeFileSync(temporary, content, { mode: 0o600 });
  renameSync(temporary, path);
}
