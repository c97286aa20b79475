/** drover why: what holds a job, who is ahead of it, and what would let it run. */
import type { WhyView } from '../protocol/why.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { shortDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { colours } from './io.ts';
import { statePaint } from './states.ts';
import { printable } from './table.ts';

export const whyCommand = defineCommand({
  name: 'why',
  summary: 'Say why a job waits, who is ahead, and what would let it run',
  usage: ['why ID'],
  options: {},
  details: 'docs/scheduling.md says how to read it.',
  async run(parsed, context) {
    const [id] = takePositionals(parsed, ['ID']);
    // A task waits for what its job waits for.
    const why = await context.client().why(id!.replace(/\.\d+$/, ''));
    if (context.json) await context.printJson(why);
    else await printWhy(context, why);
    return EXIT.ok;
  },
});

type Section = [title: string, rows: string[]];

async function printWhy(context: CommandContext, why: WhyView): Promise<void> {
  const paint = colours(context.io, context.io.stdout);
  const state = (statePaint(why.state, paint) ?? String)(why.state);
  const sections: Section[] = [
    ['workers', workerRows(why)],
    ['tasks', taskRows(why)],
    ['queue', queueRows(why)],
    ['quota', quotaRows(why)],
    ['start', startRows(why, context.io.now())],
    ['try', why.suggestions],
  ];
  const shown = sections.filter(([, rows]) => rows.length > 0);
  const width = Math.max(...shown.map(([title]) => title.length), 0);
  const lines = shown.flatMap(([title, rows]) =>
    rows.map((row, at) => {
      const head = (at === 0 ? title : '').padEnd(width);
      return `  ${paint.dim(head)}  ${printable(row)}`.trimEnd();
    }),
  );
  const first = `${printable(why.job)} ${state}: ${printable(why.sentence)}`;
  await context.print([first, ...lines].join('\n'));
}

/** Counts right-aligned, so that the largest stands out. */
function workerRows({ workers }: WhyView): string[] {
  const sorted = workers.toSorted((a, b) => b.count - a.count);
  const width = String(sorted[0]?.count ?? '').length;
  return sorted.map(({ count, text }) => `${String(count).padStart(width)}  ${text}`);
}

function taskRows({ tasks }: WhyView): string[] {
  if (tasks.waiting + tasks.running < 2) return [];
  return [`${tasks.waiting} wait, ${tasks.running} run`];
}

function queueRows({ position, ahead, aheadSample, rule }: WhyView): string[] {
  if (position === null) return [];
  const count = ahead ?? position - 1;
  const first = count === 0 ? 'next of your jobs' : `${count} of your jobs ahead`;
  const width = Math.max(0, ...aheadSample.map((other) => label(other).length));
  return [
    rule ? `${first} (${rule})` : first,
    ...aheadSample.map((other) => `${label(other).padEnd(width)}  ${other.rule}`),
    ...(count > aheadSample.length && aheadSample.length > 0
      ? [`and ${count - aheadSample.length} more: drover queue`]
      : []),
  ];
}

function label({ job, name }: { job: string; name: string }): string {
  return name ? `${job} ${name}` : job;
}

function quotaRows({ quota }: WhyView): string[] {
  if (!quota) return [];
  const { tenant, user, what, limit, used } = quota;
  const whose = user ? `${user} of ${tenant}` : `tenant ${tenant}`;
  return [`${what} of ${whose}: ${round(used)} of ${round(limit)} used`];
}

function round(amount: number): string {
  return String(Number(amount.toFixed(2)));
}

function startRows({ predictedStartAtMs: atMs }: WhyView, nowMs: number): string[] {
  if (atMs === null) return [];
  const when = atMs <= nowMs ? 'now' : `in about ${shortDuration(atMs - nowMs)}`;
  return [`${when} (${new Date(atMs).toISOString()})`];
}
