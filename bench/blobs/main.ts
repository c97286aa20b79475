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
  seconds: number;
  mibPerSecond: number;
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
  grownBytes: number | null;
}

const MIB = 1024 * 1024;
const ROOT = new URL('../../', import.meta.url).pathname;
const RESULT = join(ROOT, 'bench/results/blobs.json');
const CP = 'cp, then fsync';
const TARGET = 0.7;
const READY_LIMIT_MS = 60_000;

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
  for (let round = 0; round < Number(values.rounds); round++) {
    for await (const [step, moved] of everyStep(source, hash)) {
      process.stderr.write(`  ${step}: ${moved.seconds.toFixed(2)} s\n`);
      const last = best.get(step);
      if (!last || moved.seconds < last.seconds) best.set(step, moved);
    }
  }
  const rows = [...best].map(([step, moved]) => rowOf(step, moved, best.get(CP)!.seconds));
  console.table(rows);
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
  settle(source);
  yield ['contract: open, to a file', transfer('get', store, target, { BLOB_HASH: hash })];
  rmSync(target);
  rmSync(store, { recursive: true });
  const server = await startServer(join(folder, 'data'));
  try {
    const env = { BLOB_HASH: hash, DROVER_TOKEN: server.token };
    for (const [step, verb, file] of [
      ['HTTP: put', 'send', source],
      ['HTTP: get, to a file', 'fetch', target],
    ] as const) {
      settle(source);
      const before = server.memory();
      const { seconds } = transfer(verb, server.url, file, env);
      yield [step, { seconds, grownBytes: server.memory() - before }];
    }
  } finally {
    await server.stop();
    rmSync(target, { force: true });
    rmSync(join(folder, 'data'), { recursive: true });
  }
}

/**
 * Every step begins alike: nothing is left to be written, and as much memory as it will fill was
 * just used and freed. A virtual machine gives free memory back after seconds, and whoever comes
 * first afterwards pays for getting it again, at a fraction of the speed.
 */
function settle(source: string): void {
  execFileSync('sync');
  const scratch = join(folder, 'scratch');
  execFileSync('sh', ['-ec', 'cp "$1" "$2" && sync "$2" && rm "$2"', 'sh', source, scratch]);
}

function shell(command: string, ...args: string[]): Moved {
  const begun = performance.now();
  execFileSync('sh', ['-ec', command, 'sh', ...args]);
  return { seconds: (performance.now() - begun) / 1000, grownBytes: null };
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
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function rowOf(step: string, { seconds, grownBytes }: Moved, cpSeconds: number): Row {
  const isOurs = !step.startsWith('cp');
  const ratioToCp = Number((cpSeconds / seconds).toFixed(2));
  return {
    step,
    gib,
    seconds: Number(seconds.toFixed(2)),
    mibPerSecond: Math.round((gib * 1024) / seconds),
    ratioToCp,
    target: isOurs ? TARGET : null,
    met: isOurs ? ratioToCp >= TARGET : null,
    grownMib: grownBytes === null ? null : Math.round(grownBytes / MIB),
    note: step.startsWith('HTTP') ? 'memory of the server; client and server share the cores' : '',
  };
}
