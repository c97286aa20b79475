/**
 * The notice loop: hands queued notices to their channels, each until it was taken or a day has
 * passed. Nothing waits for a receiver: a step starts what is due and returns.
 */
import { messageOf } from '../core/noticeText.ts';
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import { nearest } from '../lib/nearest.ts';
import type { JobSpec } from '../model/job.ts';
import type { QueuedNotice } from '../model/notice.ts';
import type { NoticeMessage } from '../model/noticeMessage.ts';
import type { ReceiptView } from '../protocol/receipt.ts';
import type { Channel } from '../notify/contract.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';
import type { Mutate } from './mutate.ts';

/** A receiver that has not answered by then counts as down. */
export const SEND_TIMEOUT_MS = 10_000;
/** Sent at once over one channel; the others wait their turn. */
const SENDS_PER_CHANNEL = 4;
const FIRST_DELAY_MS = 5000;
const LONGEST_DELAY_MS = 3_600_000;
/** Nobody wants to be told after that. */
export const GIVE_UP_MS = 24 * 3_600_000;

export type Channels = ReadonlyMap<string, Channel>;

export interface NoticeOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  clock: Clock;
  log: Log;
  channels: Channels;
  cluster: string;
  /** Of a job that has ended; null: there is none. */
  receipt: (tenant: string, job: string) => Promise<ReceiptView | null>;
  hint: () => void;
}

export interface NoticeLoop {
  step(): Promise<void>;
  /** What is under way is given up, and sent again by whoever comes next. */
  close(): Promise<void>;
}

interface Sending {
  channel: string;
  job: string | null;
  done: Promise<void>;
  abort: AbortController;
}

export function createNoticeLoop(options: NoticeOptions): NoticeLoop {
  const { state, committer, clock, log, channels } = options;
  const sending = new Map<string, Sending>();
  let closed = false;

  function mayStart({ id, channel, job }: QueuedNotice): boolean {
    let busy = 0;
    for (const one of sending.values()) {
      if (one.channel !== channel) continue;
      // What is told of one job comes in its order.
      if (job !== null && one.job === job) return false;
      busy++;
    }
    return !sending.has(id) && busy < SENDS_PER_CHANNEL;
  }

  async function send(notice: QueuedNotice, abort: AbortController): Promise<void> {
    const timer = clock.setTimer(SEND_TIMEOUT_MS, () =>
      abort.abort(new Error(`no answer within ${SEND_TIMEOUT_MS / 1000} s`)),
    );
    try {
      const channel = channels.get(notice.channel);
      if (!channel) throw new Error(`there is no channel ${notice.channel} any more`);
      const message = await compose(options, notice);
      await orAborted(channel.send(message, abort.signal), abort.signal);
      if (!closed) settle(notice, null);
    } catch (error) {
      if (!closed) settle(notice, reasonOf(error, abort.signal));
    } finally {
      timer.cancel();
      sending.delete(notice.id);
      if (!closed) options.hint();
    }
  }

  function settle(notice: QueuedNotice, error: string | null): void {
    const { id, channel, kind, job, tries } = notice;
    if (error === null) {
      options.mutate({ kind: 'settle-notice', id, outcome: 'sent', reason: '' });
      return;
    }
    const nowMs = clock.now();
    log.warn({ channel, notice: id, about: kind, job, error }, 'a notice was not taken');
    const delayMs = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** tries);
    const late = nowMs + delayMs - notice.createdAtMs > GIVE_UP_MS;
    options.mutate(
      late
        ? { kind: 'settle-notice', id, outcome: 'dropped', reason: error }
        : {
            kind: 'settle-notice',
            id,
            outcome: 'failed',
            reason: error,
            nextTryAtMs: nowMs + delayMs,
          },
    );
  }

  return {
    async step() {
      if (state.notices.queued.size === 0) return;
      // Taken before the wait, so that all of them are on disk after it.
      const nowMs = clock.now();
      const due = [...state.notices.queued.values()].filter((one) => one.nextTryAtMs <= nowMs);
      await committer.durable();
      for (const notice of due) {
        if (closed || !state.notices.queued.has(notice.id) || !mayStart(notice)) continue;
        const abort = new AbortController();
        const { channel, job } = notice;
        // Registered first: it may fail at once.
        const entry: Sending = { channel, job, abort, done: Promise.resolve() };
        sending.set(notice.id, entry);
        entry.done = send(notice, abort);
      }
    },
    async close() {
      closed = true;
      const left = [...sending.values()];
      for (const { abort } of left) abort.abort(new Error('the controller stops'));
      await Promise.all(left.map(({ done }) => done));
    },
  };
}

async function compose(
  { receipt, cluster }: NoticeOptions,
  notice: QueuedNotice,
): Promise<NoticeMessage> {
  const { kind, job, tenant } = notice;
  const ended = job !== null && (kind === 'done' || kind === 'failed');
  return messageOf(notice, cluster, ended ? await receipt(tenant, job) : null);
}

/** Some waits (for a name to be resolved) know no signal. */
function orAborted(sent: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    sent.then(resolve, reject);
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

const REASON_LENGTH = 300;

function reasonOf(error: unknown, signal: AbortSignal): string {
  const cause: unknown = signal.aborted ? signal.reason : error;
  const text = cause instanceof Error ? cause.message : String(cause);
  return text.slice(0, REASON_LENGTH);
}

/** An unknown channel is refused when the job is submitted, not noticed when it has failed. */
export function checkChannels(channels: Channels, tenant: string, specs: readonly JobSpec[]): void {
  for (const { rules } of specs) {
    for (const { to } of rules?.notify ?? []) {
      const mine = [...channels].filter(([, { tenants }]) => isFor(tenants, tenant));
      const names = mine.map(([name]) => name);
      if (names.includes(to)) continue;
      const guess = nearest(to, names);
      const known = names.length > 0 ? `there are ${names.join(', ')}` : 'none is configured';
      throw new DroverError('INVALID_ARGUMENT', `there is no notification channel "${to}"`, {
        hint: guess ? `did you mean "${guess}"?` : `${known}; docs/notifications.md says how`,
      });
    }
  }
}

function isFor(tenants: readonly string[], tenant: string): boolean {
  return tenants.length === 0 || tenants.includes(tenant);
}
