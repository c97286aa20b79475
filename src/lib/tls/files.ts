/**
 * The PEM files of one end of TLS. They are read again when they change, and taken together or not
 * at all: a renewal that is half written or broken leaves the ones in use as they are.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Clock, Timer } from '../clock.ts';
import type { Log } from '../log.ts';
import { checkPems, expiresAtMs, unusable } from './pems.ts';
import type { PemFile, PemFiles, PemKind, Pems } from './pems.ts';

/** Read and not watched: links that are swapped (Kubernetes, certbot) tell a watcher nothing. */
const LOOK_MS = 5_000;

export interface TlsFilesOptions {
  files: PemFiles;
  clock: Clock;
  log: Log;
  lookMs?: number;
}

/** What a listener or a caller is given: the texts as they are now, and a word when they change. */
export interface TlsSource extends Pems {
  onChange?(apply: () => void): void;
}

export class TlsFiles implements TlsSource {
  /** Renewals that were taken, and that were refused. */
  renewals = 0;
  failures = 0;
  readonly #options: TlsFilesOptions;
  readonly #appliers: (() => void)[] = [];
  #pems: Pems;
  /** What a look found that cannot be used: told when the next look finds the same. */
  #suspect = '';
  #told = '';
  #timer: Timer | undefined;

  /** Throws a DroverError where the files cannot be used. */
  constructor(options: TlsFilesOptions) {
    this.#options = options;
    this.#pems = loadPems(options.files);
    if (this.#isExpired(this.#pems)) {
      options.log.error(this.#fields(), 'the certificate has expired: clients will refuse it');
    }
    this.#schedule();
  }

  get cert(): string | undefined {
    return this.#pems.cert;
  }

  get key(): string | undefined {
    return this.#pems.key;
  }

  get ca(): string | undefined {
    return this.#pems.ca;
  }

  get expiresAtMs(): number | undefined {
    return expiresAtMs(this.#pems);
  }

  onChange(apply: () => void): void {
    this.#appliers.push(apply);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #schedule(): void {
    const { clock, lookMs = LOOK_MS } = this.#options;
    this.#timer = clock.setTimer(lookMs, () => {
      void this.#look().finally(() => {
        if (this.#timer !== undefined) this.#schedule();
      });
    });
  }

  async #look(): Promise<void> {
    const { files, log } = this.#options;
    let found = '';
    try {
      const pems = await readPemsLater(files);
      found = JSON.stringify(pems);
      if (found === JSON.stringify(this.#pems)) return;
      if (found === this.#told) return;
      checkPems(pems, files);
      if (this.#isExpired(pems)) throw unusable(files.cert, 'has expired already');
      this.#pems = pems;
      for (const apply of this.#appliers) apply();
      this.renewals++;
      this.#told = '';
      log.info(this.#fields(), 'certificates were renewed');
    } catch (error) {
      this.#refuse(found || String(error), error);
    }
  }

  /** Two files are not written at once: only what stays wrong is told, and once is enough. */
  #refuse(found: string, error: unknown): void {
    const isFirst = this.#suspect !== found;
    this.#suspect = found;
    if (isFirst || this.#told === found) return;
    this.#told = found;
    this.failures++;
    const fields = { ...this.#fields(), error: (error as Error).message };
    this.#options.log.error(fields, 'new certificates cannot be used: the old ones stay');
  }

  #isExpired(pems: Pems): boolean {
    const atMs = expiresAtMs(pems);
    return atMs !== undefined && atMs <= this.#options.clock.now();
  }

  #fields(): object {
    const { cert, ca } = this.#options.files;
    const atMs = this.expiresAtMs;
    const expires = atMs === undefined ? undefined : new Date(atMs).toISOString();
    return { certFile: cert?.path, caFile: ca?.path, expires };
  }
}

/** Once. Throws a DroverError where the files cannot be used. */
export function loadPems(files: PemFiles): Pems {
  const pems: Partial<Record<PemKind, string>> = {};
  for (const [kind, file] of Object.entries(files) as [PemKind, PemFile][]) {
    try {
      pems[kind] = readFileSync(file.path, 'utf8');
    } catch (cause) {
      throw unusable(file, `cannot be read (${(cause as Error).message})`, cause);
    }
  }
  checkPems(pems, files);
  return pems;
}

async function readPemsLater(files: PemFiles): Promise<Pems> {
  const entries = Object.entries(files) as [PemKind, PemFile][];
  const read = entries.map(async ([kind, { path }]) => [kind, await readFile(path, 'utf8')]);
  return Object.fromEntries(await Promise.all(read)) as Pems;
}
