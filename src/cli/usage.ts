/** drover usage: device hours, core hours and money, by user, tenant, pool or day. */
import { USAGE_BY, type UsageRow } from '../protocol/budgets.ts';
import { oneOf, UsageError } from './args.ts';
import { defineCommand, takePositionals } from './command.ts';
import { parseDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { showMoney } from './money.ts';
import { printTable, type Column } from './table.ts';

export const usageCommand = defineCommand({
  name: 'usage',
  summary: 'Show what was used and what it cost',
  usage: ['usage [--by user|tenant|pool|day] [--since WHEN] [--until WHEN]'],
  options: {
    by: { kind: 'text', value: 'BY', help: 'user (default), tenant, pool or day' },
    since: { kind: 'text', value: 'WHEN', help: '7d, or 2026-11-01 (default: this month)' },
    until: { kind: 'text', value: 'WHEN', help: '1d (ago), or a date (default: now)' },
  },
  details: 'Days and months are those of UTC. Running work is charged every hour and at its end.',
  async run(parsed, context) {
    takePositionals(parsed, []);
    const { by = 'user', since, until } = parsed.options;
    const nowMs = context.io.now();
    const query = {
      by: oneOf(by, USAGE_BY, '--by'),
      sinceMs: since === undefined ? monthStart(nowMs) : pointInTime(since, '--since', nowMs),
      untilMs: until === undefined ? nowMs : pointInTime(until, '--until', nowMs),
    };
    if (query.untilMs <= query.sinceMs) throw new UsageError('--until lies before --since');
    const rows = await context.client().usage(query);
    if (context.json) {
      await context.printJson(rows);
    } else if (rows.length === 0) {
      const from = new Date(query.sinceMs).toISOString().slice(0, 10);
      await context.notice(`nothing was used since ${from}; --since looks further back`);
    } else {
      const shown = rows.length > 1 ? [...rows, total(rows)] : rows;
      await printTable(context.io, shown, columns(by));
    }
    return EXIT.ok;
  },
});

/** A date is the start of that day in UTC; a duration counts back from now. */
function pointInTime(text: string, what: string, nowMs: number): number {
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return nowMs - parseDuration(text, what);
  const atMs = Date.parse(text);
  if (Number.isFinite(atMs)) return atMs;
  throw new UsageError(`${what} ${JSON.stringify(text)} is not a date`, 'write 2026-11-01 or 7d');
}

function monthStart(nowMs: number): number {
  const now = new Date(nowMs);
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
}

function total(rows: UsageRow[]): UsageRow {
  const sum = (of: (row: UsageRow) => number): number =>
    rows.reduce((all, row) => all + of(row), 0);
  return {
    key: 'total',
    deviceHours: sum((row) => row.deviceHours),
    cpuHours: sum((row) => row.cpuHours),
    costMicros: sum((row) => row.costMicros),
    attempts: sum((row) => row.attempts),
  };
}

function columns(by: string): Column<UsageRow>[] {
  return [
    { title: by.toUpperCase(), value: (row) => row.key },
    { title: 'DEVICE HOURS', value: (row) => row.deviceHours.toFixed(1) },
    { title: 'CPU HOURS', value: (row) => row.cpuHours.toFixed(1) },
    { title: 'COST', value: (row) => showMoney(row.costMicros) },
    { title: 'ATTEMPTS', value: (row) => String(row.attempts) },
  ];
}
