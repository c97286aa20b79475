/** A simulation as tables: the runs side by side, then waits, pools, tenants and what never ran. */
import type { PoolRow, RunReport, Simulation, TenantRow, WaitRow } from '../protocol/simulation.ts';
import type { CommandContext } from './command.ts';
import { shortDuration } from './durations.ts';
import { printTable, type Column } from './table.ts';

const TENANTS_SHOWN = 20;
const REASONS_SHOWN = 10;
const MICROS = 1_000_000;

type Printer = Pick<CommandContext, 'io' | 'print' | 'notice'>;

export async function printSimulation(context: Printer, simulation: Simulation): Promise<void> {
  const { runs } = simulation;
  await printSkipped(context, simulation);
  await printSummary(context, simulation);
  await context.print('');
  await printWaits(context, simulation);
  await context.print('');
  await printPools(context, runs);
  await printTenants(context, runs);
  await printUnschedulable(context, runs);
}

async function printSkipped(context: Printer, { workload }: Simulation): Promise<void> {
  for (const { reason, count, lines } of workload.skipped) {
    const more = count > lines.length ? ', …' : '';
    const where = lines.length > 0 ? ` (line ${lines.join(', ')}${more})` : '';
    await context.notice(`left out ${count}: ${reason}${where}`);
  }
}

type Fact = { name: string; values: string[] };

async function printSummary(context: Printer, simulation: Simulation): Promise<void> {
  const { runs, workload } = simulation;
  const rows: Fact[] = [];
  const row = (name: string, value: (run: RunReport) => string): void => {
    const values = runs.map(value);
    if (values.some((text) => text !== '')) rows.push({ name, values });
  };
  row('workers', (run) => number(run.fleet.workers));
  row('cpus', (run) => number(run.fleet.cpus));
  row('devices', (run) => number(run.fleet.devices));
  row('jobs', (run) => number(run.jobs.submitted));
  row('  succeeded', (run) => number(run.jobs.succeeded));
  for (const name of ['failed', 'unschedulable', 'refused', 'running', 'waiting'] as const) {
    row(`  ${name}`, (run) => (run.jobs[name] > 0 ? number(run.jobs[name]) : ''));
  }
  row('started', (run) => startedShare(all(run.wait)));
  row('wait p50', (run) => duration(all(run.wait).p50Ms));
  row('wait p90', (run) => duration(all(run.wait).p90Ms));
  row('wait p99', (run) => duration(all(run.wait).p99Ms));
  row('wait max', (run) => duration(all(run.wait).maxMs));
  row('makespan', (run) => duration(run.makespanMs));
  row('devices in use', (run) => share(run.utilisation.devices));
  row('cpus in use', (run) => share(run.utilisation.cpu));
  row('cost of use', (run) => money(run.cost.usedMicros));
  row('cost if always on', (run) => money(run.cost.standingMicros));
  row('fairness', (run) => run.fairness?.toFixed(3) ?? '');
  row('preemptions', (run) => number(run.preemptions));
  row('lost attempts', (run) => (run.lost > 0 ? number(run.lost) : ''));
  row('retries', (run) => (run.retried > 0 ? number(run.retried) : ''));
  await printTable(context.io, rows, [
    { title: `${workload.name} (seed ${workload.seed})`, value: (fact) => fact.name },
    ...runs.map((run, at) => ({
      title: run.name,
      value: (fact: Fact) => fact.values[at] || '-',
    })),
  ]);
}

type Wait = WaitRow & { run: string };

/** Bands together, so that the runs of each lie side by side. */
async function printWaits(context: Printer, simulation: Simulation): Promise<void> {
  const { runs, workload } = simulation;
  const sources = [
    ...(workload.recorded ? [{ name: 'as recorded', wait: workload.recorded }] : []),
    ...runs,
  ];
  const bands = [...new Set(sources.flatMap(({ wait }) => wait.map(({ band }) => band)))];
  const rows: Wait[] = bands.flatMap((band) =>
    sources.flatMap(({ name, wait }) =>
      wait.filter((one) => one.band === band).map((one) => ({ ...one, run: name })),
    ),
  );
  const named: Column<Wait>[] =
    sources.length > 1 ? [{ title: 'RUN', value: (wait) => wait.run }] : [];
  await printTable(context.io, rows, [
    { title: 'WAIT', value: (wait) => wait.band },
    ...named,
    { title: 'TASKS', value: (wait) => number(wait.count) },
    { title: 'STARTED', value: startedShare },
    { title: 'P50', value: (wait) => duration(wait.p50Ms) },
    { title: 'P90', value: (wait) => duration(wait.p90Ms) },
    { title: 'P99', value: (wait) => duration(wait.p99Ms) },
    { title: 'MAX', value: (wait) => duration(wait.maxMs) },
    { title: 'MEAN', value: (wait) => duration(wait.meanMs) },
  ]);
}

async function printPools(context: Printer, runs: RunReport[]): Promise<void> {
  type Row = PoolRow & { run: string };
  const rows = byName(runs, (run) => run.pools, 'pool');
  const named: Column<Row>[] = runs.length > 1 ? [{ title: 'RUN', value: (row) => row.run }] : [];
  await printTable(context.io, rows, [
    { title: 'POOL', value: (row) => row.pool },
    ...named,
    { title: 'WORKERS', value: (row) => number(row.workers) },
    { title: 'DEVICES', value: (row) => number(row.devices) },
    { title: 'DEVICES IN USE', value: (row) => share(row.deviceShare) || '-' },
    { title: 'CPUS IN USE', value: (row) => share(row.cpu) || '-' },
    { title: 'DEVICE HOURS', value: (row) => hours(row.deviceHours) },
    { title: 'COST', value: (row) => money(row.usedMicros) || '-' },
    { title: 'ALWAYS ON', value: (row) => money(row.standingMicros) || '-' },
  ]);
}

async function printTenants(context: Printer, runs: RunReport[]): Promise<void> {
  type Row = TenantRow & { run: string };
  const rows = byName(runs, (run) => run.tenants, 'tenant');
  const shown = TENANTS_SHOWN * runs.length;
  if (rows.length <= runs.length) return;
  const named: Column<Row>[] = runs.length > 1 ? [{ title: 'RUN', value: (row) => row.run }] : [];
  await context.print('');
  await printTable(context.io, rows.slice(0, shown), [
    { title: 'TENANT', value: (row) => row.tenant },
    ...named,
    { title: 'JOBS', value: (row) => number(row.jobs) },
    { title: 'DEVICE HOURS', value: (row) => hours(row.deviceHours) },
    { title: 'CPU HOURS', value: (row) => hours(row.cpuHours) },
    { title: 'COST', value: (row) => money(row.usedMicros) || '-' },
  ]);
  const left = Math.ceil((rows.length - shown) / runs.length);
  if (left > 0) await context.notice(`${left} more tenants: --json has all`);
}

/** The rows of all runs, those of one name together, in the order of the first run. */
function byName<Row extends object>(
  runs: RunReport[],
  rowsOf: (run: RunReport) => Row[],
  name: keyof Row,
): (Row & { run: string })[] {
  const rows = runs.flatMap((run) => rowsOf(run).map((row) => ({ ...row, run: run.name })));
  const names = [...new Set(rows.map((row) => row[name]))];
  return names.flatMap((one) => rows.filter((row) => row[name] === one));
}

async function printUnschedulable(context: Printer, runs: RunReport[]): Promise<void> {
  const rows = runs.flatMap((run) =>
    run.unschedulable.map(({ reason, jobs }) => ({ run: run.name, reason, jobs })),
  );
  if (rows.length === 0) return;
  await context.print('');
  await printTable(context.io, rows.slice(0, REASONS_SHOWN), [
    { title: 'NEVER RAN', value: (row) => number(row.jobs) },
    ...(runs.length > 1 ? [{ title: 'RUN', value: (row: (typeof rows)[number]) => row.run }] : []),
    { title: 'BECAUSE', value: (row) => row.reason },
  ]);
  const left = rows.length - REASONS_SHOWN;
  if (left > 0) await context.notice(`${left} more reasons: --json has all`);
}

function all(rows: WaitRow[]): WaitRow {
  return rows.find(({ band }) => band === 'all') as WaitRow;
}

function startedShare({ started, count }: WaitRow): string {
  return count === 0 ? '-' : share(started / count);
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}

function duration(ms: number): string {
  return shortDuration(ms);
}

function share(value: number | null): string {
  return value === null ? '' : `${(value * 100).toFixed(1)} %`;
}

function hours(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 1 });
}

/** In whatever currency the prices are. */
function money(micros: number): string {
  if (micros === 0) return '';
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return (micros / MICROS).toLocaleString('en-US', digits);
}
