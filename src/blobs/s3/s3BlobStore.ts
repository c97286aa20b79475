/**
 * Blobs in a bucket: PREFIX/<tenant>/blobs/<64 digits>. An object keeps the time it was put, so
 * that one found again long after gets an empty object PREFIX/<tenant>/wanted/<64 digits>, whose
 * time counts instead.
 */
import type { Readable } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import { type BlobHash, hexOf, isBlobHash } from '../../model/blob.ts';
import { eachAtOnce } from '../atOnce.ts';
import type { BlobContent, BlobEntry, BlobRange, BlobStat, BlobStore } from '../contract.ts';
import { noSuchBlob } from '../errors.ts';
import { BLOB_LIMITS } from '../limits.ts';
import { tenantFolder } from '../names.ts';
import { verified } from '../verify.ts';
import { type S3Answer, S3Client, type S3Settings, bodyOf } from './client.ts';
import { download } from './download.ts';
import { S3_LIMITS } from './limits.ts';
import { listObjects, type ListedObject } from './listing.ts';
import { refusal } from './problems.ts';
import { Turns } from './turns.ts';
import { upload } from './upload.ts';

export interface S3BlobStoreOptions extends S3Settings {
  /** Put before every key; may be empty. */
  prefix: string;
  clock: Clock;
  /** See BLOB_LIMITS. */
  refreshMs?: number;
}

const NOTHING = Buffer.alloc(0);

export class S3BlobStore implements BlobStore {
  readonly kind = 's3';
  readonly client: S3Client;
  readonly #options: S3BlobStoreOptions;
  readonly #uploads = new Turns(S3_LIMITS.uploadsAtOnce);

  constructor(options: S3BlobStoreOptions) {
    this.#options = options;
    this.client = new S3Client(options, options.clock);
  }

  async put(
    tenant: string,
    hash: BlobHash,
    size: number,
    content: BlobContent,
  ): Promise<{ created: boolean }> {
    // That the bucket is there shows in the upload.
    if (await this.#found(tenant, hash)) return { created: false };
    const key = this.#key(tenant, hash);
    await this.#uploads.take(() => upload(this.client, key, size, verified(hash, size, content)));
    return { created: true };
  }

  async open(tenant: string, hash: BlobHash, range?: BlobRange): Promise<Readable> {
    const key = this.#key(tenant, hash);
    const absent = (answer: S3Answer): Promise<never> => this.#absent(hash, answer);
    return download(this.client, { key, range, absent });
  }

  async pieces(
    tenant: string,
    hash: BlobHash,
    range?: BlobRange,
  ): Promise<AsyncIterator<Uint8Array>> {
    return (await this.open(tenant, hash, range))[Symbol.asyncIterator]();
  }

  async stat(tenant: string, hash: BlobHash): Promise<BlobStat | undefined> {
    const known = await this.#look(tenant, hash);
    if (!known) await this.#checkBucket();
    return known;
  }

  async missing(tenant: string, hashes: readonly BlobHash[]): Promise<BlobHash[]> {
    const wanted = [...new Set(hashes)];
    const found = await eachAtOnce(wanted, (hash) => this.#found(tenant, hash));
    const absent = wanted.filter((_, index) => !found[index]);
    if (absent.length > 0) await this.#checkBucket();
    return absent;
  }

  async remove(tenant: string, hash: BlobHash): Promise<boolean> {
    const key = this.#key(tenant, hash);
    // S3 answers the removal of what is not there as it does any other.
    const known = await this.#head(key);
    if (!known) {
      await this.#checkBucket();
      return false;
    }
    await this.client.call({ method: 'DELETE', key });
    if (!this.#isFresh(known)) {
      await this.client.call({ method: 'DELETE', key: this.#wantedKey(tenant, hash) });
    }
    return true;
  }

  /** Both lists come in the order of their keys, so that one pass pairs them. */
  async *list(tenant: string): AsyncGenerator<BlobEntry> {
    const marks = listObjects(this.client, `${this.#home(tenant)}wanted/`);
    let mark: ListedObject | undefined;
    for await (const { name, ...known } of listObjects(
      this.client,
      `${this.#home(tenant)}blobs/`,
    )) {
      const hash = `sha256:${name}`;
      if (!isBlobHash(hash)) continue;
      while (mark === undefined || mark.name < name) {
        const next = await marks.next();
        // Past the last: no name is greater than this one.
        mark = next.done ? { name: '~', size: 0, modifiedAtMs: 0 } : next.value;
      }
      yield { hash, ...(mark.name === name ? newer(known, mark) : known) };
    }
  }

  async signedUrl(tenant: string, hash: BlobHash, ttlMs: number): Promise<string> {
    return this.client.signedUrl(this.#key(tenant, hash), ttlMs);
  }

  close(): Promise<void> {
    return this.client.close();
  }

  #home(tenant: string): string {
    const { prefix } = this.#options;
    return `${prefix ? `${prefix}/` : ''}${tenantFolder(tenant)}/`;
  }

  #key(tenant: string, hash: BlobHash): string {
    return `${this.#home(tenant)}blobs/${hexOf(hash)}`;
  }

  #wantedKey(tenant: string, hash: BlobHash): string {
    return `${this.#home(tenant)}wanted/${hexOf(hash)}`;
  }

  /** Whether it is there; if so it counts as wanted from now on. */
  async #found(tenant: string, hash: BlobHash): Promise<boolean> {
    const known = await this.#look(tenant, hash);
    if (!known) return false;
    if (this.#isFresh(known)) return true;
    const key = this.#wantedKey(tenant, hash);
    await this.client.call({ method: 'PUT', key, body: bodyOf(NOTHING) });
    return true;
  }

  /** Undefined where S3 says so, or where there is no bucket: see `checkBucket`. */
  async #look(tenant: string, hash: BlobHash): Promise<BlobStat | undefined> {
    const known = await this.#head(this.#key(tenant, hash));
    if (!known || this.#isFresh(known)) return known;
    const mark = await this.#head(this.#wantedKey(tenant, hash));
    return mark ? newer(known, mark) : known;
  }

  async #head(key: string): Promise<BlobStat | undefined> {
    const { status, headers } = await this.client.call({ method: 'HEAD', key });
    if (status === 404) return undefined;
    return {
      size: Number(headers['content-length']),
      modifiedAtMs: Date.parse(String(headers['last-modified'])),
    };
  }

  #isFresh({ modifiedAtMs }: BlobStat): boolean {
    const { clock, refreshMs = BLOB_LIMITS.refreshMs } = this.#options;
    return clock.now() - modifiedAtMs < refreshMs;
  }

  async #absent(hash: BlobHash, answer: S3Answer): Promise<never> {
    if (!answer.text.includes('<Code>NoSuchKey</Code>')) await this.#checkBucket();
    throw noSuchBlob(hash);
  }

  /** The answer to a HEAD has no body: that the bucket itself is there makes absence definite. */
  async #checkBucket(): Promise<void> {
    const answer = await this.client.call({ method: 'HEAD', key: '' });
    if (answer.status === 404) {
      throw refusal({ status: 404, text: '<Code>NoSuchBucket</Code>' }, this.#options);
    }
  }
}

function newer(known: BlobStat, mark: BlobStat): BlobStat {
  return { ...known, modifiedAtMs: Math.max(known.modifiedAtMs, mark.modifiedAtMs) };
}
