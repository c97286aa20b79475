/** Follows a job's log over SSE, as records or as lines with the time they arrived. */
import type { LogRecordView } from '../../../src/protocol/jobs.ts';
import { fineWallClock, sleep } from '../support/measure.ts';
import type { DroverServer } from './drover.ts';

/** Every record until the log is complete. */
export async function* records(server: DroverServer, job: string): AsyncGenerator<LogRecordView> {
  const answer = await fetch(`${server.url}${server.logsPath(job)}?follow=true`, {
    headers: { authorization: `Bearer ${server.token}`, accept: 'text/event-stream' },
  });
  if (!answer.ok || !answer.body) throw new Error(`logs of ${job}: ${answer.status}`);
  let rest = '';
  let ended = false;
  for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + text).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      ended ||= event.includes('event: end');
      const record = parse(event);
      if (record) yield record;
    }
  }
  if (!ended) throw new Error(`the log of ${job} broke off`);
}

/** Comments (keep-alives) and events of other kinds, such as the end, carry no record. */
function parse(event: string): LogRecordView | undefined {
  const fields = event.split('\n');
  const data = fields.filter((line) => line.startsWith('data:')).map((line) => line.slice(5));
  if (fields.includes('event: problem')) throw new Error(`the log ended with ${data.join(' ')}`);
  if (data.length === 0 || !fields.some((line) => line.startsWith('id:'))) return undefined;
  const record = JSON.parse(data.join('\n')) as Partial<LogRecordView>;
  return record.offset === undefined ? undefined : (record as LogRecordView);
}

/** No log has so many records, so this asks for none of them. */
const BEYOND = 1e12;
const LOOK_MS = 20;

/** Resolves when every byte of an ended job's log is durable, without reading it. */
export async function logComplete(server: DroverServer, job: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${server.url}${server.logsPath(job)}?after=${BEYOND}`, {
      headers: { authorization: `Bearer ${server.token}` },
    });
    if (!answer.ok) throw new Error(`logs of ${job}: ${answer.status}`);
    const { meta } = (await answer.json()) as { meta: { complete: boolean } };
    if (meta.complete) return;
    await sleep(LOOK_MS);
  }
}

export function bytesOf(record: LogRecordView): Buffer {
  if (record.base64 !== undefined) return Buffer.from(record.base64, 'base64');
  return Buffer.from(record.text ?? '');
}

export interface ArrivedLine {
  text: string;
  atMs: number;
}

/** Whole lines of a job with one task. */
export async function* lines(server: DroverServer, job: string): AsyncGenerator<ArrivedLine> {
  const now = fineWallClock();
  let rest = '';
  for await (const record of records(server, job)) {
    const atMs = now();
    const parts = (rest + bytesOf(record).toString()).split('\n');
    rest = parts.pop() ?? '';
    for (const text of parts) yield { text, atMs };
  }
}
