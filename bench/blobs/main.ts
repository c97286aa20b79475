/**
 * How fast blobs go in and out: `make bench-blobs [GIB=10]`. One file is moved by cp, through the
 * contract and through a gateway's HTTP, each to the disk and in the same run. Prints a table and
 * writes bench/results/blobs.json.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, mkdirSync, mkdtempSync, openSync } from 'node:fs';
import { readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setTimeout as delay } from 'node:timers/promises';

interface Row {
  step: string;
  gib: number;
  /** The best of the rounds, as a shared machine is only ever slower than itself. */
  seconds: number;
  everyRound: number[];
  mibPerSecond: number;
  /** Of all processes that take part, in the best round: steadier than the time. */
  cpuSecondsPerGib: number;
  /** To `cp` with an fsync, of the same run: like put, it is on disk when it says so. */
  ratioToCp: number;
  target: number | null;
  met: boolean | null;
  /** How much the memory of the process that moves the bytes grew at most, in MiB. */
  grownMib: number | null;
  note: string;
}

interface Moved {
  seconds: number;
  cpuSeconds: number;
  grownBytes: number | null;
}

const MIB = 1024 * 1024;
const ROOT = new URL('../../', import.meta.url).pathname;
const RESULT = join(ROOT, 'bench/results/blobs.json');
const CP = 'cp, then fsync';
const TARGET = 0.7;
const READY_LIMIT_MS = 60_000;
/** What /proc counts in; Linux has no other. */
const TICKS_PER_SECOND = 100;

const { values } = parseArgs({
  options: {
    gib: { type: 'string', default: '10' },
    dir: { type: 'string', default: join(ROOT, '.cache') },
    rounds: { type: 'string', default: '1' },
    out: { type: 'string', default: RESULT },
  },
});
const gib = Number(values.gib);
mkdirSync(values.dir, { recursive: true });
const folder = mkdtempSync(join(values.dir, 'bench-blobs-'));
try {
  await main();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function main(): Promise<void> {
  const source = join(folder, 'source');
  const hash = writeSource(source, gib * 1024 * MIB);
  const best = new Map<string, Moved>();
  const times = new Map<string, number[]>();
  for (let round = 0; round < Number(values.rounds); round++) {
    for await (const [step, moved] of everyStep(source, hash)) {
      const { seconds, cpuSeconds } = moved;
      process.stderr.write(`  ${step}: ${seconds.toFixed(2)} s, CPU ${cpuSeconds.toFixed(2)} s\n`);
      times.set(step, [...(times.get(step) ?? []), Number(seconds.toFixed(2))]);
      const last = best.get(step);
      if (!last || moved.seconds < last.seconds) best.set(step, moved);
    }
  }
  const cpSeconds = best.get(CP)!.seconds;
  const rows = [...best].map(([step, moved]) => rowOf(step, moved, times.get(step)!, cpSeconds));
  console.table(rows.map((row) => ({ ...row, everyRound: row.everyRound.join(' ') })));
  writeFileSync(values.out, `${JSON.stringify(rows, null, 2)}\n`);
}

/** What was written before is removed first: a full disk is slower, and not everybody has room. */
async function* everyStep(source: string, hash: string): AsyncGenerator<[string, Moved]> {
  const target = join(folder, 'target');
  const store = join(folder, 'store');
  settle(source);
  yield ['cp', shell('cp "$1" "$2"', source, target)];
  rmSync(target);
  settle(source);
  yield [CP, shell('cp "$1" "$2" && sync "$2"', source, target)];
  rmSync(target);
  settle(source);
  yield ['contract: put', transfer('put', store, source, { BLOB_HASH: hash })];
  settle(blobIn(store, hash));
  yield ['contract: get, to a file', transfer('get', store, target, { BLOB_HASH: hash })];
  rmSync(target);
  rmSync(store, { recursive: true });
  const server = await startServer(join(folder, 'data'));
  try {
    const env = { BLOB_HASH: hash, DROVER_TOKEN: server.token };
    for (const [step, verb, file] of [
      ['HTTP: put', 'send', source],
      ['HTTP: get, to a file', 'fetch', target],
    ] as const) {
      settle(verb === 'send' ? source : blobIn(join(folder, 'data/blobs'), hash));
      const [memory, cpu] = [server.memory(), server.cpuSeconds()];
      const { seconds, cpuSeconds } = transfer(verb, server.url, file, env);
      const grownBytes = server.memory() - memory;
      yield [step, { seconds, cpuSeconds: cpuSeconds + server.cpuSeconds() - cpu, grownBytes }];
    }
  } finally {
    await server.stop();
    rmSync(target, { force: true });
    rmSync(join(folder, 'data'), { recursive: true });
  }
}

/** The file of the one blob. */
function blobIn(store: string, hash: string): string {
  const [, hex = ''] = hash.split(':');
  const found = execFileSync('find', [store, '-name', hex], { encoding: 'utf8' });
  return found.trim();
}

/**
 * Every step begins alike: what will be read was just read, nothing is left to be written, and as
 * much memory as it will fill was just used and freed. A virtual machine gives free memory back
 * after seconds, and whoever comes first afterwards pays for getting it again, at a fraction of the
 * speed.
 */
function settle(source: string): void {
  execFileSync('sync');
  const scratch = join(folder, 'scratch');
  execFileSync('sh', ['-ec', 'cp "$1" "$2" && sync "$2" && rm "$2"', 'sh', source, scratch]);
}

function shell(command: string, ...args: string[]): Moved {
  const timed = `TIMEFORMAT='%R %U %S'; time { ${command}; }`;
  const run = spawnSync('bash', ['-ec', timed, 'bash', ...args], { encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`${command} failed: ${run.stderr}`);
  const [seconds = 0, user = 0, system = 0] = run.stderr.trim().split(' ').map(Number);
  return { seconds, cpuSeconds: user + system, grownBytes: null };
}

function transfer(verb: string, place: string, file: string, env: Record<string, string>): Moved {
  const script = join(ROOT, 'bench/blobs/transfer.ts');
  const run = spawnSync(process.execPath, [script, verb, place, file], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (run.status !== 0) throw new Error(`${verb} failed`);
  return JSON.parse(run.stdout) as Moved;
}

/** Bytes that no disk compresses or shares. */
function writeSource(path: string, size: number): string {
  const cipher = createCipheriv('aes-128-ctr', randomBytes(16), randomBytes(16));
  const digest = createHash('sha256');
  const zeros = Buffer.alloc(4 * MIB);
  const file = openSync(path, 'w');
  for (let left = size; left > 0; left -= zeros.length) {
    const bytes = cipher.update(zeros.subarray(0, Math.min(left, zeros.length)));
    digest.update(bytes);
    writeSync(file, bytes);
  }
  fsyncSync(file);
  closeSync(file);
  return `sha256:${digest.digest('hex')}`;
}

interface Server {
  url: string;
  token: string;
  /** The most it has held so far, in bytes. */
  memory(): number;
  cpuSeconds(): number;
  stop(): Promise<void>;
}

async function startServer(dataDir: string): Promise<Server> {
  const args = ['controller', '--with-gateway', '--data', dataDir, '--port', '0'];
  const env = { ...process.env, DROVER_GRPC_ENABLED: 'false', DROVER_LOGS_LEVEL: 'warn' };
  const child: ChildProcess = spawn(join(ROOT, 'drover'), args, { env, stdio: 'inherit' });
  const connection = join(dataDir, 'connection.json');
  const giveUpAt = performance.now() + READY_LIMIT_MS;
  while (!existsSync(connection)) {
    if (performance.now() > giveUpAt) throw new Error('the server did not start');
    await delay(50);
  }
  const { url, token } = JSON.parse(readFileSync(connection, 'utf8')) as Server;
  return {
    url,
    token,
    memory() {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) * 1024;
    },
    cpuSeconds() {
      const line = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
      const [user, system] = line
        .slice(line.lastIndexOf(')') + 2)
        .split(' ')
        .slice(11, 13);
      return (Number(user) + Number(system)) / TICKS_PER_SECOND;
    },
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function rowOf(step: string, moved: Moved, everyRound: number[], cpSeconds: number): Row {
  const { seconds, cpuSeconds, grownBytes } = moved;
  const isOurs = !step.startsWith('cp');
  const ratioToCp = Number((cpSeconds / seconds).toFixed(2));
  return {
    step,
    gib,
    seconds: Number(seconds.toFixed(2)),
    everyRound,
    mibPerSecond: Math.round((gib * 1024) / seconds),
    cpuSecondsPerGib: Number((cpuSeconds / gib).toFixed(2)),
    ratioToCp,
    target: isOurs ? TARGET : null,
    met: isOurs ? ratioToCp >= TARGET : null,
    grownMib: grownBytes === null ? null : Math.round(grownBytes / MIB),
    note: step.startsWith('HTTP') ? 'memory of the server; client and server share the cores' : '',
  };
}
