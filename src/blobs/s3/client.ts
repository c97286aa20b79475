/** Signed calls to one bucket: tries again what may pass, and tells apart what went wrong. */
import { hash } from 'node:crypto';
import { Agent as Connections, type Dispatcher, request } from 'undici';
import { type Clock, sleep } from '../../lib/clock.ts';
import { S3_LIMITS } from './limits.ts';
import { noAnswer, refusal } from './problems.ts';
import { encodePath, queryOf, signedHeaders, signedUrl } from '../../lib/s3Signature.ts';
import type { Signer } from '../../lib/s3Signature.ts';

export interface S3Settings extends Signer {
  /** https://host[:port]; empty for AWS itself. */
  endpoint: string;
  bucket: string;
  /** The bucket as the first part of the path, not of the host name. */
  pathStyle: boolean;
}

export interface S3Call {
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** Empty for the bucket itself. */
  key: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: S3Body;
}

/** With its SHA-256, which signs it; computed once however often it is sent. */
export interface S3Body {
  bytes: Buffer;
  digest: Buffer;
}

export function bodyOf(bytes: Buffer): S3Body {
  return { bytes, digest: hash('sha256', bytes, 'buffer') };
}

export interface S3Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

type Response = Dispatcher.ResponseData;

const NOTHING = hash('sha256', '', 'hex');
/** A server that is busy, starting or behind a proxy that lost it. */
const MAY_PASS = new Set([408, 429, 500, 502, 503, 504]);

export class S3Client {
  readonly #settings: S3Settings;
  readonly #clock: Clock;
  readonly #connections = new Connections({
    connections: S3_LIMITS.connections,
    connect: { timeout: S3_LIMITS.connectMs },
    headersTimeout: S3_LIMITS.answerMs,
    bodyTimeout: S3_LIMITS.silenceMs,
  });

  constructor(settings: S3Settings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  /** Resolves with a success or a 404, which is the caller's to judge; throws for all else. */
  async call(call: S3Call): Promise<S3Answer> {
    return this.#repeat(async () => {
      const response = await this.#send(call);
      const text = await response.body.text();
      return { status: response.statusCode, headers: response.headers, text };
    });
  }

  /** The same, with a success' body to be read by the caller. */
  async stream(call: S3Call): Promise<S3Answer & { body?: Response['body'] }> {
    return this.#repeat(async () => {
      const { statusCode: status, headers, body } = await this.#send(call);
      if (status < 300) return { status, headers, text: '', body };
      return { status, headers, text: await body.text() };
    });
  }

  signedUrl(key: string, ttlMs: number): string {
    const seconds = Math.min(Math.ceil(ttlMs / 1000), S3_LIMITS.longestUrlSeconds);
    return signedUrl(this.#settings, this.#url(key), seconds, this.#clock.now());
  }

  async close(): Promise<void> {
    await this.#connections.destroy();
  }

  async #repeat<Answer extends S3Answer>(send: () => Promise<Answer>): Promise<Answer> {
    for (let failures = 1; ; failures++) {
      const isLast = failures === S3_LIMITS.tries;
      try {
        const answer = await send();
        if (answer.status < 300 || answer.status === 404) return answer;
        if (isLast || !MAY_PASS.has(answer.status)) throw refusal(answer, this.#settings);
      } catch (error) {
        if (isLast || !isOfConnection(error)) throw noAnswer(error, this.#settings);
      }
      await sleep(this.#clock, S3_LIMITS.firstPauseMs * 2 ** (failures - 1));
    }
  }

  #send({ method, key, query = {}, headers = {}, body }: S3Call): Promise<Response> {
    const url = this.#url(key);
    url.search = queryOf(query);
    const bodyHash = body ? body.digest.toString('hex') : NOTHING;
    const signable = { method, url, headers, bodyHash };
    return request(url, {
      method,
      headers: signedHeaders(this.#settings, signable, this.#clock.now()),
      body: body?.bytes ?? null,
      dispatcher: this.#connections,
    });
  }

  #url(key: string): URL {
    const { endpoint, region, bucket, pathStyle } = this.#settings;
    const url = new URL(endpoint || `https://s3.${region}.amazonaws.com`);
    const base = url.pathname.replace(/\/+$/, '');
    if (!pathStyle) url.host = `${bucket}.${url.host}`;
    url.pathname = base + encodePath(pathStyle ? `/${bucket}/${key}` : `/${key}`);
    return url;
  }
}

/** undici and the system name what broke; what we threw ourselves has no such code. */
function isOfConnection(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' && /^(UND_ERR_|E[A-Z]+$)/.test(code);
}
