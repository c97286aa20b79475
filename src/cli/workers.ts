/** drover workers: the machines, what is free on them, and taking one out of service. */
import type { WorkerView } from '../protocol/fleet.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { ago } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { nearest } from '../lib/nearest.ts';
import { fetchList, pagingOptions, printList } from './paging.ts';
import { showCpus, showMemory } from './resources.ts';
import { statePaint } from './states.ts';
import type { Column } from './table.ts';

const VERBS = ['drain', 'undrain', 'revoke'];

const INSECURE =
  'this cluster is insecure: tokens cross the network readable (docs/tls.md says how to end it)';

const WORDS = { drain: 'drains', undrain: 'takes work again', revoke: 'is refused from now on' };

export const workersCommand = defineCommand({
  name: 'workers',
  summary: 'List workers; drain, undrain or revoke one',
  usage: [
    'workers [--limit N | --all]',
    'workers drain ID…',
    'workers undrain ID…',
    'workers revoke ID…',
  ],
  options: pagingOptions,
  details:
    'A drained worker finishes what runs and gets nothing new. A revoked one is refused at\n' +
    'once: what it runs is lost when its lease has run out. It joins again only with a token.',
  async run(parsed, context) {
    const [verb, ...ids] = parsed.positionals;
    if (verb === undefined) {
      takePositionals(parsed, []);
      return listWorkers(context, parsed.options);
    }
    if (!VERBS.includes(verb)) {
      const close = nearest(verb, VERBS);
      throw new UsageError(`unknown: workers ${verb}`, close && `drover workers ${close} ID`);
    }
    if (ids.length === 0) throw new UsageError('ID is missing', `drover workers ${verb} ID`);
    const client = context.client();
    for (const id of ids) {
      const worker =
        verb === 'revoke'
          ? await client.revokeWorker(id)
          : await client.setDraining(id, verb === 'drain');
      if (context.json) await context.printJson(worker);
      else await context.print(`${id} ${WORDS[verb as keyof typeof WORDS]}`);
    }
    return EXIT.ok;
  },
});

async function listWorkers(
  context: CommandContext,
  options: { limit: string | undefined; all: boolean },
): Promise<number> {
  const client = context.client();
  const [listed, { insecure }] = await Promise.all([
    fetchList(options, (page) => client.listWorkers(page)),
    client.cluster(),
  ]);
  if (insecure) await context.notice(INSECURE);
  const whenEmpty =
    'no workers; `drover tokens create --kind join` makes a token to join one with:\n' +
    '  drover agent --join URL TOKEN';
  await printList(context, listed, columns(context.io.now()), whenEmpty);
  return EXIT.ok;
}

function columns(nowMs: number): Column<WorkerView>[] {
  return [
    { title: 'ID', value: (worker) => worker.id },
    { title: 'NAME', value: (worker) => worker.name },
    { title: 'POOL', value: (worker) => worker.pool },
    {
      title: 'STATE',
      value: showState,
      paint: (worker, paint) => {
        return statePaint(showState(worker) === worker.state ? worker.state : 'SUSPECT', paint);
      },
    },
    {
      title: 'FREE CPUS',
      value: ({ free, total }) => share(showCpus(free.cpuMillis), showCpus(total.cpuMillis)),
    },
    {
      title: 'FREE MEM',
      value: ({ free, total }) =>
        share(showMemory(free.memoryBytes), showMemory(total.memoryBytes)),
    },
    {
      title: 'FREE GPUS',
      value: ({ free, total }) =>
        total.devices === 0 ? '-' : share(String(free.devices), String(total.devices)),
    },
    { title: 'RUNS', value: (worker) => String(worker.attempts) },
    { title: 'SEEN', value: ({ lastSeenAtMs: at }) => (at === null ? '-' : ago(at, nowMs)) },
    { title: 'DEVICES', value: showDevices },
    { title: 'PROBLEMS', value: ({ problems }) => showProblems(problems) },
  ];
}

function showState({ state, draining, problems }: WorkerView): string {
  if (draining) return `${state} draining`;
  return problems.some(({ severity }) => severity === 'drain') ? `${state} unwell` : state;
}

function showProblems(problems: WorkerView['problems']): string {
  return problems.map(({ message }) => message).join('; ') || '-';
}

function share(free: string, total: string): string {
  return `${free}/${total}`;
}

/** 4x A100 80G, 1x T4 15G. */
function showDevices(worker: WorkerView): string {
  const counts = new Map<string, number>();
  for (const { model, memoryBytes } of worker.devices) {
    const kind = memoryBytes > 0 ? `${model} ${showMemory(memoryBytes)}` : model;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return [...counts].map(([kind, count]) => `${count}x ${kind}`).join(', ');
}
