/** A notice in words: a subject and a few lines. */
import type { QueuedNotice } from '../model/notice.ts';
import type { NoticeMessage } from '../model/noticeMessage.ts';

interface Told {
  line: string;
  sentences: string[];
  next: string[];
}

export function messageOf(
  notice: QueuedNotice,
  cluster: string,
  receipt: Told | null,
): NoticeMessage {
  const { id, kind, tenant, job, facts, createdAtMs } = notice;
  const subject = plain(kind === 'budget' ? budgetSubject(notice) : jobSubject(notice));
  const lines = (receipt ? linesOf(receipt) : detailsOf(notice)).map(plain);
  return { id, kind, atMs: createdAtMs, cluster, tenant, job, subject, lines, facts, receipt };
}

function linesOf({ sentences, next }: Told): string[] {
  return [...sentences, ...next.map((what) => `Next: ${what}.`)];
}

function jobSubject({ kind, job, facts }: QueuedNotice): string {
  const name = facts['name'] ? `${facts['name']} (${job})` : `job ${job}`;
  if (kind === 'started') return `${name} has started`;
  if (kind === 'interrupted') return `${name} was interrupted and is queued again`;
  if (kind === 'idle') return `${name} leaves its devices idle`;
  if (kind === 'done') return `${name} is done`;
  const state = facts['state'];
  if (state === 'CANCELLED') return `${name} was cancelled`;
  if (state === 'UNSCHEDULABLE') return `${name} could not be placed in time`;
  return facts['exitCode']
    ? `${name} failed with exit code ${facts['exitCode']}`
    : `${name} failed`;
}

function budgetSubject({ tenant, facts }: QueuedNotice): string {
  const whose = facts['user'] ? `${facts['user']} of ${tenant}` : tenant;
  const what = facts['unit'] === 'money' ? 'money' : 'device hours';
  return `${whose} has used ${facts['percent']} % of the ${what} of this ${facts['period']}`;
}

function detailsOf({ kind, facts }: QueuedNotice): string[] {
  const lines: string[] = [];
  if (kind === 'budget')
    lines.push(`${round(facts['used'])} of ${round(facts['limit'])} are used.`);
  if (facts['worker']) lines.push(`It runs on ${facts['worker']}.`);
  if (facts['reason']) lines.push(`${facts['reason']}.`);
  if (Number(facts['tasks'] ?? 1) > 1) lines.push(`${facts['tasks']} of its tasks are concerned.`);
  return lines;
}

function round(amount: unknown): number {
  return Number(Number(amount).toFixed(2));
}

/** Names and reasons are users' own words: one line, without what a terminal or header obeys. */
function plain(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').slice(0, 1000);
}
