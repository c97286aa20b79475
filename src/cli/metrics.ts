/** drover metrics: what is measured of a job, as a table, as it comes, or as a file. */
import { createWriteStream } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { MetricSample, MetricSeries } from '../protocol/metrics.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { ago, parseDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { watchInterrupts } from './interrupts.ts';
import { splitTask } from './logs.ts';
import { showMemory } from './resources.ts';
import { printable, printTable } from './table.ts';

/** As many points as the sparkline has places. */
const SPARK_WIDTH = 24;

export const metricsCommand = defineCommand({
  name: 'metrics',
  summary: 'Show what is measured of a job: CPU, memory, devices, and its own metrics',
  usage: ['metrics ID [--name N] [--since D]', 'metrics ID --watch', 'metrics ID --csv FILE'],
  options: {
    task: { kind: 'text', value: 'N', help: "only this index (or write the task's id)" },
    name: { kind: 'text', value: 'NAME', help: 'only the metric of this name' },
    since: { kind: 'text', value: 'D', help: 'only of this time: 10m' },
    watch: { kind: 'flag', short: 'w', help: 'every sample as it comes, until the job ends' },
    csv: { kind: 'text', value: 'FILE', help: 'every sample into a file; - is stdout' },
  },
  details:
    'A job writes its own as JSON lines to $DROVER_METRICS_FILE, as {"step": 1, "loss": 0.5};\n' +
    'docs/metrics.md says more.',
  async run(parsed, context) {
    const { options } = parsed;
    const [written] = takePositionals(parsed, ['ID']);
    const { id, task } = splitTask(written!, options.task);
    if (options.watch && options.csv !== undefined) {
      throw new UsageError('give one of --watch and --csv');
    }
    const since =
      options.since === undefined
        ? undefined
        : context.io.now() - parseDuration(options.since, '--since');
    const query = { task, since, name: options.name };
    if (options.watch) return watch(context, id, query);
    if (options.csv !== undefined) return download(context, id, query, options.csv);
    const series = await context.client().metrics(id, { ...query, maxPoints: SPARK_WIDTH });
    if (context.json) await context.printJson(series);
    else if (series.length === 0) await context.notice(`nothing was measured of ${id} yet`);
    else await printSeries(context, series);
    return EXIT.ok;
  },
});

interface Query {
  task: number | undefined;
  since: number | undefined;
  name: string | undefined;
}

async function printSeries(context: CommandContext, series: MetricSeries[]): Promise<void> {
  const nowMs = context.io.now();
  const many = new Set(series.map(({ index }) => index)).size > 1;
  await printTable(context.io, series, [
    ...(many ? [{ title: 'TASK', value: (one: MetricSeries) => one.task }] : []),
    { title: 'METRIC', value: ({ name }) => name },
    { title: 'LATEST', value: ({ name, last }) => show(name, last) },
    { title: 'MIN', value: ({ name, min }) => show(name, min) },
    { title: 'MEAN', value: ({ name, mean }) => show(name, mean) },
    { title: 'MAX', value: ({ name, max }) => show(name, max) },
    { title: 'STEP', value: ({ step }) => (step === null ? '-' : String(step)) },
    { title: 'AT', value: ({ atMs }) => ago(atMs, nowMs) },
    { title: 'COURSE', value: ({ points }) => sparkline(points.map(({ mean }) => mean)) },
  ]);
}

function show(name: string, value: number): string {
  if (/bytes$/i.test(name) && value >= 0) return showMemory(Math.round(value));
  if (/percent$/i.test(name)) return `${Number(value.toFixed(1))} %`;
  return String(Number(value.toPrecision(5)));
}

const BARS = '▁▂▃▄▅▆▇█';

/** The least is the lowest bar and the most the highest. */
function sparkline(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const scale = most > least ? (BARS.length - 1) / (most - least) : 0;
  return values.map((value) => BARS[Math.round((value - least) * scale)]).join('');
}

async function watch(context: CommandContext, id: string, query: Query): Promise<number> {
  const interrupts = watchInterrupts(context.io);
  try {
    const samples = context.client().followMetrics(id, { ...query, signal: interrupts.first });
    for await (const sample of samples) {
      if (context.json) await context.printJson(sample);
      else await context.print(lineOf(sample));
    }
    return EXIT.ok;
  } catch (error) {
    if (interrupts.first.aborted) return EXIT.interrupt;
    throw error;
  } finally {
    interrupts.stop();
  }
}

function lineOf({ task, atMs, step, values }: MetricSample): string {
  const words = Object.entries(values).map(
    ([name, value]) => `${printable(name)}=${value === null ? 'nan' : show(name, value)}`,
  );
  const at = step === null ? [] : [`step ${step}`];
  return [new Date(atMs).toISOString(), task, ...at, ...words].join('  ');
}

async function download(
  context: CommandContext,
  id: string,
  query: Query,
  file: string,
): Promise<number> {
  const { body } = await context.client().downloadMetrics(id, 'csv', query);
  const bytes = body ? Readable.fromWeb(body) : [];
  if (file === '-') {
    for await (const chunk of bytes) await context.io.stdout.write(chunk as Uint8Array);
    return EXIT.ok;
  }
  const target = path.resolve(context.io.cwd, file);
  await pipeline(bytes, createWriteStream(target));
  await context.notice(`written to ${target}`);
  return EXIT.ok;
}
