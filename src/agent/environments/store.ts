/**
 * What was built for commands to run in, once per machine and key: environments from lock files,
 * images as files. A folder counts when its `complete.json` is there; it keeps its path for good,
 * because environments name themselves by it. What no attempt uses goes first, by last use.
 */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import { Unprepared } from '../runtimes/around.ts';
import { runTool } from './tool.ts';

const COMPLETE = 'complete.json';
const USERS = 'users';

export interface StoreOptions {
  folder: string;
  /** Where attempts have their directories: while one is there, what it uses stays. */
  attempts: string;
  keep: number;
  maxBytes: number;
  clock: Clock;
  random: Random;
}

interface Built {
  folder: string;
  bytes: number;
  usedAtMs: number;
}

export class EnvironmentStore {
  readonly #options: StoreOptions;
  readonly #building = new Map<string, Promise<void>>();
  #opening: Promise<void> | undefined;

  constructor(options: StoreOptions) {
    this.#options = options;
  }

  /** The folder of what has this key, built first where there is none; kept for the attempt. */
  async use(
    key: string,
    attempt: { uid: string; say: (progress: string) => void },
    build: (folder: string) => Promise<void>,
  ): Promise<string> {
    await (this.#opening ??= this.#open());
    for (;;) {
      const building = this.#building.get(key);
      const found = building ? undefined : this.#find(key);
      if (building) {
        attempt.say('waiting for another attempt that builds its environment');
        // Who began it may have been stopped: then it is begun anew here.
        await building.catch(() => undefined);
      } else if (found) {
        this.#touch(found, attempt.uid);
        return found;
      } else {
        const made = this.#build(key, attempt.uid, build);
        this.#building.set(key, made);
        await made.finally(() => this.#building.delete(key));
      }
    }
  }

  async #build(key: string, uid: string, build: (folder: string) => Promise<void>): Promise<void> {
    const { folder, random, clock } = this.#options;
    const own = join(folder, `${key}.${random.hex(4)}`);
    mkdirSync(join(own, USERS), { recursive: true, mode: 0o700 });
    try {
      await build(own);
      const bytes = await diskBytes(own, clock);
      writeFileSync(join(own, COMPLETE), JSON.stringify({ bytes }), { mode: 0o600 });
      this.#touch(own, uid);
    } catch (error) {
      await removeFolder(own, clock);
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      const message = `no space is left on this machine's disk, at ${folder}`;
      throw new Unprepared(message, { hostFault: true, cause: error });
    }
    await this.#evict();
  }

  /** What an earlier agent was building is of no use. */
  async #open(): Promise<void> {
    const { folder, clock } = this.#options;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder)) {
      const own = join(folder, name);
      if (!existsSync(join(own, COMPLETE))) await removeFolder(own, clock);
    }
  }

  #find(key: string): string | undefined {
    const { folder } = this.#options;
    const name = readdirSync(folder).find(
      (one) => one.startsWith(`${key}.`) && existsSync(join(folder, one, COMPLETE)),
    );
    return name === undefined ? undefined : join(folder, name);
  }

  #touch(own: string, uid: string): void {
    const now = this.#options.clock.now() / 1000;
    utimesSync(join(own, COMPLETE), now, now);
    writeFileSync(join(own, USERS, uid), '');
  }

  async #evict(): Promise<void> {
    const { folder, keep, maxBytes, clock } = this.#options;
    const all = readdirSync(folder)
      .map((name) => readBuilt(join(folder, name)))
      .filter((one) => one !== undefined)
      .toSorted((a, b) => a.usedAtMs - b.usedAtMs);
    let bytes = all.reduce((sum, one) => sum + one.bytes, 0);
    let left = all.length;
    for (const one of all) {
      if (left <= keep && bytes <= maxBytes) return;
      if (this.#isUsed(one.folder)) continue;
      await removeFolder(one.folder, clock);
      bytes -= one.bytes;
      left--;
    }
  }

  #isUsed(own: string): boolean {
    return readdirSync(join(own, USERS)).some((uid) =>
      existsSync(join(this.#options.attempts, uid)),
    );
  }
}

export function keyOf(parts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest('hex');
}

function readBuilt(folder: string): Built | undefined {
  const file = join(folder, COMPLETE);
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return undefined;
  const { bytes } = JSON.parse(readFileSync(file, 'utf8')) as { bytes: number };
  return { folder, bytes, usedAtMs: stat.mtimeMs };
}

const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin' };

async function diskBytes(folder: string, clock: Clock): Promise<number> {
  const { stdout } = await runTool({ program: 'du', args: ['-sk', folder], env, clock });
  return (Number.parseInt(stdout, 10) || 0) * 1024;
}

/** `complete.json` goes first, so that nothing half removed is ever used. */
async function removeFolder(folder: string, clock: Clock): Promise<void> {
  rmSync(join(folder, COMPLETE), { force: true });
  // Environments are made read-only when they are built.
  await runTool({ program: 'chmod', args: ['-R', 'u+w', folder], env, clock });
  rmSync(folder, { recursive: true, force: true });
}
