/** Users under load: submit over HTTP with an idempotency key, again until acknowledged. */
import { setTimeout as delay } from 'node:timers/promises';
import type { SubmittedSpec } from '../../src/protocol/jobSpec.ts';

export interface Submitters {
  /** Acknowledged so far: job id by key. */
  acknowledged: Map<string, string>;
  /** Answers that were neither 2xx nor "try again": must stay empty. */
  surprises: string[];
  /** Calls that got no answer, or 503. */
  unanswered(): number;
  /** Ends when every key that was begun is acknowledged. */
  finish(): Promise<void>;
}

export interface SubmittersOptions {
  url: string;
  token: string;
  count: number;
  /** Between an acknowledgement and the next job of the same submitter. */
  pauseMs: number;
  spec: (n: number) => SubmittedSpec;
  prefix?: string;
}

/** A call that hangs longer is given up and repeated. */
const CALL_LIMIT_MS = 10_000;
const RETRY_MS = 30;

/** The job's name is its key, so that a duplicate shows in any list. */
export function startSubmitters(options: SubmittersOptions): Submitters {
  const { url, token, count, pauseMs, spec, prefix = 'load' } = options;
  const acknowledged = new Map<string, string>();
  const surprises: string[] = [];
  let unanswered = 0;
  let finishing = false;
  let n = 0;

  const submit = async (key: string, body: string): Promise<void> => {
    for (;;) {
      const reply = await post(url, token, key, body);
      if (reply?.status === 201 || reply?.status === 200) {
        acknowledged.set(key, (JSON.parse(reply.text) as { data: { id: string } }).data.id);
        return;
      }
      if (reply !== null && reply.status !== 503) {
        surprises.push(`${reply.status} ${reply.text}`);
        return;
      }
      unanswered++;
      await delay(RETRY_MS);
    }
  };
  const loop = async (): Promise<void> => {
    for (;;) {
      if (finishing) return;
      const key = `${prefix}-${++n}`;
      await submit(key, JSON.stringify({ name: key, ...spec(n) }));
      await delay(pauseMs);
    }
  };
  const loops = Array.from({ length: count }, loop);
  return {
    acknowledged,
    surprises,
    unanswered: () => unanswered,
    async finish() {
      finishing = true;
      await Promise.all(loops);
    },
  };
}

/** Null: no answer, so nobody knows. */
export async function post(
  url: string,
  token: string,
  key: string,
  body: string,
): Promise<{ status: number; text: string } | null> {
  try {
    const response = await fetch(`${url}/v1/jobs`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body,
      signal: AbortSignal.timeout(CALL_LIMIT_MS),
    });
    return { status: response.status, text: await response.text() };
  } catch {
    // Refused, reset or cut short.
    return null;
  }
}
