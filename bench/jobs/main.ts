/** `make bench-jobs`: Drover beside a bare baseline and its rivals, in one run on one machine. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { batch } from './batch.ts';
import { calibrate } from './calibrate.ts';
import { execute } from './execute.ts';
import { history } from './history.ts';
import { idleAgents } from './idleAgents.ts';
import { logs } from './logs.ts';
import { restart } from './restart.ts';
import { RIVALS } from './rivals/contract.ts';
import { startLatency } from './startLatency.ts';
import { submit } from './submit.ts';
import type { Bench } from './support/bench.ts';
import { BARE, DROVER, Report } from './support/report.ts';

const SCENARIOS: ((bench: Bench) => Promise<void>)[] = [
  calibrate,
  submit,
  batch,
  execute,
  startLatency,
  idleAgents,
  logs,
  history,
  restart,
];
const SYSTEMS = [BARE, DROVER, ...RIVALS.map((rival) => rival.system)];
const RESULTS = new URL('../results/jobs.json', import.meta.url).pathname;
const USAGE = `node bench/jobs/main.ts [--only 1,2] [--systems ${SYSTEMS.join(',')}]
  [--seconds 10] [--quick] [--dir DIR] [--out FILE]
--dir is where the stores go (default /var/tmp: on a disk, unlike /tmp on some machines).
`;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    systems: { type: 'string' },
    seconds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    dir: { type: 'string', default: '/var/tmp' },
    out: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) process.stdout.write(USAGE);
else await main();

async function main(): Promise<void> {
  const quick = values.quick;
  const seconds = Number(values.seconds ?? (quick ? 2 : 10));
  if (!(seconds > 0)) throw new Error(`--seconds takes a number above 0`);
  mkdirSync(values.dir, { recursive: true });
  const bench: Bench = {
    report: new Report(!quick),
    seconds,
    warmupSeconds: quick ? 1 : 3,
    quick,
    systems: new Set(chosen('--systems', values.systems, SYSTEMS)),
    directory: mkdtempSync(join(values.dir, 'drover-bench-')),
  };
  // PostgreSQL refuses to be root and so runs as its own user, who must be able to pass.
  chmodSync(bench.directory, 0o711);
  const remove = (): void => rmSync(bench.directory, { recursive: true, force: true });
  process.on('exit', remove);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));

  const numbers = SCENARIOS.map((_, i) => String(i));
  for (const number of chosen('--only', values.only, numbers)) {
    const scenario = SCENARIOS[Number(number)]!;
    process.stderr.write(`scenario ${number}: ${scenario.name}\n`);
    await scenario(bench);
  }
  process.stdout.write(`${cpus().length} processors (${cpus()[0]?.model.trim()}), `);
  process.stdout.write(`${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}; `);
  process.stdout.write('the load runs on the same processors as what it measures\n');
  bench.report.print();
  // A look is not a result: it never takes the place of a full run's file.
  const out = values.out ?? (quick || values.only || values.systems ? undefined : RESULTS);
  if (out !== undefined) bench.report.write(out);
  process.stdout.write(out === undefined ? '\nnot written (--out FILE writes it)\n' : `\n${out}\n`);
  if (bench.report.failures > 0) process.exitCode = 1;
}

function chosen(flag: string, given: string | undefined, all: string[]): string[] {
  if (given === undefined) return all;
  const list = given.split(',').map((item) => item.trim());
  const unknown = list.find((item) => !all.includes(item));
  if (unknown !== undefined) {
    throw new Error(`${flag} ${unknown}: not one of ${all.join(', ')}`);
  }
  return list;
}
