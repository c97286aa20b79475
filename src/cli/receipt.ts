/** drover receipt: where a job ran, what it cost, what was lost, and what to do next. */
import { ApiError } from '../protocol/client.ts';
import type { ReceiptView } from '../protocol/receipt.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { shortDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { colours } from './io.ts';
import { showMoney } from './money.ts';
import { statePaint } from './states.ts';
import { printable } from './table.ts';

export const receiptCommand = defineCommand({
  name: 'receipt',
  summary: 'Say where a job ran, what it cost, what was lost, and what to do next',
  usage: ['receipt ID'],
  options: {},
  details: 'docs/receipts.md says how to read it.',
  async run(parsed, context) {
    const [id] = takePositionals(parsed, ['ID']);
    const receipt = await context.client().receipt(id!.replace(/\.\d+$/, ''));
    if (context.json) await context.printJson(receipt);
    else await printReceipt(context, receipt);
    return EXIT.ok;
  },
});

type Section = [title: string, rows: string[]];

async function printReceipt(context: CommandContext, receipt: ReceiptView): Promise<void> {
  const paint = colours(context.io, context.io.stdout);
  const { job, name, state, reason } = receipt;
  const sections: Section[] = [
    ['ran on', placeRows(receipt)],
    ['time', timeRows(receipt)],
    ['lost', lostRows(receipt)],
    ['cost', receipt.costMicros > 0 ? [showMoney(receipt.costMicros)] : []],
    ['saved', savedRows(receipt)],
    ['next', receipt.next],
  ];
  const lines = sections.flatMap(([title, rows]) =>
    rows.map((row, at) => {
      const head = (at === 0 ? title : '').padEnd('ran on'.length);
      return `  ${paint.dim(head)}  ${printable(row)}`.trimEnd();
    }),
  );
  const label = printable(name ? `${job} ${name}` : job);
  const ended = reason ? `: ${printable(reason)}` : '';
  const first = `${label} ${(statePaint(state, paint) ?? String)(state)}${ended}`;
  await context.print([first, ...lines].join('\n'));
}

function placeRows({ ranOn }: ReceiptView): string[] {
  return ranOn.map(({ name, pool, devices, attempts, ms }) => {
    const what = [pool && `pool ${pool}`, devices].filter(Boolean).join(', ');
    const tries = attempts === 1 ? '' : ` in ${attempts} attempts`;
    return `${name}${what ? ` (${what})` : ''}, ${shortDuration(ms)}${tries}`;
  });
}

function timeRows({ time }: ReceiptView): string[] {
  const parts: [string, number][] = [
    ['waiting', time.waitingMs],
    ['starting', time.startingMs],
    ['running', time.runningMs],
    ['stopping', time.stoppingMs],
  ];
  const spent = parts.filter(([, ms]) => ms > 0);
  return [spent.map(([what, ms]) => `${what} ${shortDuration(ms)}`).join(', ')];
}

function lostRows({ lost }: ReceiptView): string[] {
  return lost.map(({ fault, ms, attempts, why }) => {
    const tries = attempts === 1 ? '' : ` in ${attempts} attempts`;
    return `${shortDuration(ms)} to ${fault}${tries}${why ? `: ${why}` : ''}`;
  });
}

function savedRows({ checkpoints, resumes }: ReceiptView): string[] {
  return checkpoints > 0 ? [`${checkpoints} checkpoints, resumed ${resumes} times`] : [];
}

/** For whoever watched a run to its end. The job's exit code matters more than this line. */
export async function showReceiptLine(context: CommandContext, id: string): Promise<void> {
  if (!context.io.stderr.isTTY) return;
  try {
    const { line, next } = await context.client().receipt(id);
    await context.notice(printable([line, ...next.slice(0, 1)].join('; ')));
  } catch (error) {
    // A server of an older version has no receipts.
    if (!(error instanceof ApiError)) throw error;
  }
}
