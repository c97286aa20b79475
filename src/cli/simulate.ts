/** drover simulate: how long work would wait and what it would cost on a fleet not yet there. */
import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { DroverError } from '../lib/errors.ts';
import type {
  NamedText,
  Simulation,
  SimulationRequest,
  Variant,
  WorkloadSource,
} from '../protocol/simulation.ts';
import { UsageError, wholeNumber, type OptionTable, type OptionValues } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { parseDuration } from './durations.ts';
import { reportError } from './errors.ts';
import { EXIT } from './exitCodes.ts';
import type { CliIo } from './io.ts';
import { printSimulation } from './simulateOutput.ts';

const OPTIONS = {
  fleet: { kind: 'text', value: 'FILE', help: 'the fleet: pools, workers, prices, budgets' },
  sacct: { kind: 'text', value: 'FILE', help: 'a Slurm site’s accounting is the workload' },
  'from-server': { kind: 'flag', help: 'what a live server ran is the workload' },
  since: { kind: 'text', value: 'D', help: 'how far --from-server looks back (default 7d)' },
  policy: { kind: 'list', value: 'K=V', help: 'vary a policy: tick=10s, bands=off, …' },
  against: { kind: 'text', value: 'FILE', help: 'a second fleet to compare with' },
  policy2: { kind: 'list', value: 'K=V', help: 'policy of what is compared with' },
  seed: { kind: 'text', value: 'N', help: 'of all that is drawn (default: the file’s, or 1)' },
  until: { kind: 'text', value: 'D', help: 'stop after so much simulated time' },
  svg: { kind: 'text', value: 'FILE', help: 'draw queue and utilisation over time' },
} as const satisfies OptionTable;

type Options = OptionValues<typeof OPTIONS>;

const DEFAULT_SINCE = '7d';
/** A word is said once so much real time has passed since the last. */
const PROGRESS_MS = 1000;

export const simulateCommand = defineCommand({
  name: 'simulate',
  summary: 'Try a workload on a fleet that need not exist',
  usage: [
    'simulate WORKLOAD.yaml --fleet FLEET.yaml [--against FLEET2.yaml] [--svg FILE]',
    'simulate --sacct FILE --fleet FLEET.yaml',
    'simulate --from-server [--since 7d] [--fleet FLEET.yaml]',
  ],
  options: OPTIONS,
  details:
    'The same planner and state as in a server, on simulated time: wait, utilisation and cost\n' +
    'under another fleet, budget or policy. docs/simulate.md explains both files; examples are\n' +
    'in examples/simulate/.',
  async run(parsed, context) {
    const { options } = parsed;
    const { simulate } = context.io;
    if (!simulate) throw new Error('the simulator is not part of this program');
    const workload = sourceOf(parsed, options, context);
    const request: SimulationRequest = {
      workload,
      variants: variantsOf(options, workload, context.io),
      seed: options.seed === undefined ? null : wholeNumber(options.seed, '--seed'),
      horizonMs: options.until === undefined ? null : parseDuration(options.until, '--until'),
      svg: options.svg !== undefined,
      progress: progressTo(context),
    };
    let simulation: Simulation;
    try {
      simulation = await simulate(request);
    } catch (error) {
      // Files and policies are part of what was typed; the report lists all that is wrong in them.
      if (!(error instanceof DroverError) || error.code !== 'INVALID_ARGUMENT') throw error;
      await reportError(context.io, error, { command: 'simulate', json: context.json });
      return EXIT.usage;
    }
    if (options.svg !== undefined && simulation.svg !== null) {
      writeDrawing(path.resolve(context.io.cwd, options.svg), options.svg, simulation.svg);
    }
    const { svg: _, ...plain } = simulation;
    if (context.json) await context.printJson(plain);
    else await printSimulation(context, simulation);
    return EXIT.ok;
  },
});

function sourceOf(
  parsed: { positionals: string[]; rest: string[] | undefined },
  options: Options,
  context: CommandContext,
): WorkloadSource {
  const { io } = context;
  const named = [
    parsed.positionals.length > 0,
    options.sacct !== undefined,
    options['from-server'],
  ];
  if (named.filter(Boolean).length > 1) {
    throw new UsageError('WORKLOAD, --sacct and --from-server exclude each other');
  }
  if (options.since !== undefined && !options['from-server']) {
    throw new UsageError('--since goes with --from-server');
  }
  if (options['from-server']) {
    const since = parseDuration(options.since ?? DEFAULT_SINCE, '--since');
    const nowMs = io.now();
    return { kind: 'server', client: context.client(), sinceMs: nowMs - since, nowMs };
  }
  if (options.sacct !== undefined) {
    return { kind: 'sacct', name: options.sacct, lines: linesOf(io, options.sacct) };
  }
  const [file] = takePositionals(parsed, ['WORKLOAD']);
  return { kind: 'file', ...readFile(io, file!) };
}

function variantsOf(options: Options, workload: WorkloadSource, io: CliIo): Variant[] {
  const { fleet, against, policy, policy2 } = options;
  if (fleet === undefined && workload.kind !== 'server') {
    throw new UsageError('--fleet FILE is missing', 'see examples/simulate/ for one');
  }
  const first: Variant = {
    name: fleet === undefined ? 'its own fleet' : path.basename(fleet),
    fleet: fleet === undefined ? null : readFile(io, fleet),
    policy,
  };
  if (against === undefined && policy2.length === 0) return [first];
  const second: Variant = {
    name: against === undefined ? first.name : path.basename(against),
    fleet: against === undefined ? first.fleet : readFile(io, against),
    policy: policy2.length > 0 ? policy2 : policy,
  };
  if (second.name === first.name) {
    first.name = [first.name, ...policy].join(' ');
    second.name = [second.name, ...second.policy].join(' ');
    if (second.name === first.name) second.name += ' (2)';
  }
  return [first, second];
}

function readFile(io: CliIo, file: string): NamedText {
  try {
    return { name: file, text: readFileSync(path.resolve(io.cwd, file), 'utf8') };
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Accounting of years may not fit into one text. */
async function* linesOf(io: CliIo, file: string): AsyncGenerator<string> {
  const stream = createReadStream(path.resolve(io.cwd, file), 'utf8');
  try {
    await once(stream, 'open');
    yield* createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    throw unreadable(file, error);
  } finally {
    stream.destroy();
  }
}

function unreadable(file: string, error: unknown): UsageError {
  return new UsageError(`${file} cannot be read: ${(error as Error).message}`);
}

function writeDrawing(file: string, typed: string, svg: string): void {
  try {
    writeFileSync(file, svg);
  } catch (error) {
    throw new UsageError(`${typed} cannot be written: ${(error as Error).message}`);
  }
}

function progressTo(context: CommandContext): SimulationRequest['progress'] {
  const { io } = context;
  let saidAtMs = io.now();
  return (text) => {
    if (!io.stderr.isTTY || io.now() - saidAtMs < PROGRESS_MS) return;
    saidAtMs = io.now();
    void context.notice(text);
  };
}
