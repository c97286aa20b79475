/** `make bench-placement TRACES=DIR`: how full each policy gets a fleet, by published rules. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { bestFit } from './bestFit.ts';
import { drover } from './drover.ts';
import { runOnce, type Policy, type Run } from './experiment.ts';
import { fgd } from './fgd.ts';
import { readTraces, type TraceNode, type TraceTask } from './traces.ts';

type PolicyOf = (nodes: readonly TraceNode[], tasks: readonly TraceTask[]) => Policy;

const POLICIES: Record<string, PolicyOf> = { drover, 'best-fit': bestFit, fgd };
const FIRST_SEED = 42;
const RESULTS = new URL('../results/placement.json', import.meta.url).pathname;
const USAGE = `node bench/placement/main.ts --traces DIR [--seeds 10] [--fgd-seeds N]
  [--only LIST,LIST] [--policies ${Object.keys(POLICIES).join(',')}] [--out FILE]
DIR holds node_list*.csv and pod_list_*.csv. Seeds count from ${FIRST_SEED}. Only a run of every
list and policy writes bench/results/placement.json; --out writes any.
`;

interface Row {
  list: string;
  policy: string;
  /** Percent of all device thousandths in use, mean over seeds. */
  at100: number;
  at130: number;
  /** Standard deviations over seeds. */
  spread: number;
  at100Spread: number;
  decisionsPerSecond: number;
  seeds: number;
}

const { values } = parseArgs({
  options: {
    traces: { type: 'string' },
    seeds: { type: 'string', default: '10' },
    'fgd-seeds': { type: 'string' },
    only: { type: 'string' },
    policies: { type: 'string' },
    out: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help || !values.traces) {
  (values.help ? process.stdout : process.stderr).write(USAGE);
  process.exitCode = values.help ? 0 : 2;
} else main(values.traces);

function main(folder: string): void {
  const { nodes, lists } = readTraces(folder);
  const wanted = values.only?.split(',') ?? lists.map(({ name }) => name);
  const policies = values.policies?.split(',') ?? Object.keys(POLICIES);
  const rows: Row[] = [];
  process.stdout.write(`${nodes.length} nodes; percent of device capacity in use\n`);
  print(['list', 'policy', 'at 100 %', 'at 130 %', 'spread', 'decisions/s', 'seeds']);
  for (const { name, tasks } of lists.filter((list) => wanted.includes(list.name))) {
    for (const policy of policies) {
      const policyOf = POLICIES[policy];
      if (!policyOf) throw new Error(`there is no policy ${policy}`);
      const runs = seedsFor(policy).map((seed) => runOnce(nodes, tasks, seed, policyOf));
      const row = rowOf(name, policy, runs);
      rows.push(row);
      print([
        row.list,
        row.policy,
        row.at100.toFixed(2),
        row.at130.toFixed(2),
        row.spread.toFixed(2),
        String(row.decisionsPerSecond),
        String(row.seeds),
      ]);
    }
  }
  const whole = !values.only && !values.policies;
  const out = values.out ?? (whole ? RESULTS : undefined);
  if (!out) return;
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, `${JSON.stringify(rows, null, 2)}\n`);
}

function seedsFor(policy: string): number[] {
  const count = Number((policy === 'fgd' && values['fgd-seeds']) || values.seeds);
  if (!Number.isInteger(count) || count < 1) throw new Error('--seeds takes a number above 0');
  return Array.from({ length: count }, (_, at) => FIRST_SEED + at);
}

function rowOf(list: string, policy: string, runs: Run[]): Row {
  const sum = (of: (run: Run) => number): number => runs.reduce((all, run) => all + of(run), 0);
  const mean = (of: (run: Run) => number): number => sum(of) / runs.length;
  const deviation = (of: (run: Run) => number): number => {
    const middle = mean(of);
    return Math.sqrt(mean((run) => (of(run) - middle) ** 2));
  };
  const round = (value: number): number => Math.round(value * 1000) / 1000;
  return {
    list,
    policy,
    at100: round(mean(({ at100 }) => at100)),
    at130: round(mean(({ at130 }) => at130)),
    spread: round(deviation(({ at130 }) => at130)),
    at100Spread: round(deviation(({ at100 }) => at100)),
    decisionsPerSecond: Math.round(sum((run) => run.decisions) / sum((run) => run.seconds)),
    seeds: runs.length,
  };
}

function print(cells: string[]): void {
  const widths = [14, 10, 10, 10, 8, 12, 6];
  const text = cells.map((cell, at) =>
    at < 2 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0),
  );
  process.stdout.write(`${text.join('')}\n`);
}
