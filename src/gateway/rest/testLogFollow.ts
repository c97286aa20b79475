/** What the log routes' tests share: a coordinator whose log grows, and a small EventSource. */
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { DroverError } from '../../lib/errors.ts';
import type { Principal } from '../../model/token.ts';
import type { LogPage, LogQuery } from '../../protocol/coordinator.ts';
import type { LogRecordView } from '../../protocol/jobs.ts';

export const WHO = {
  token: 't1',
  tenant: 'lab',
  user: 'ada',
  scopes: ['jobs:read'],
} as unknown as Principal;

/** A job whose log grows while it is read. */
export class FakeCoordinator {
  readonly records: LogRecordView[] = [];
  readonly queries: LogQuery[] = [];
  complete = false;
  failure: Error | undefined;
  pageRecords = 10;
  #waiting: (() => void)[] = [];

  add(text: string, index = 0): void {
    const seq = this.records.length + 1;
    this.records.push({
      seq,
      task: `j1.${index}`,
      index,
      attempt: 1,
      stream: 'stdout',
      offset: 0,
      atMs: seq,
      text,
    });
    this.wake();
  }

  wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  readLogs = async (who: Principal, job: string, query: LogQuery): Promise<LogPage> => {
    if (who !== WHO) throw new DroverError('PERMISSION_DENIED', 'somebody else');
    this.queries.push(query);
    if (job !== 'j1') throw new DroverError('NOT_FOUND', `no job ${job}`);
    if (query.waitMs > 0 && query.after >= this.records.length && !this.complete) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        setTimeout(resolve, query.waitMs);
      });
    }
    if (this.failure) throw this.failure;
    let found = this.records.filter(
      ({ seq, index, atMs }) =>
        seq > query.after &&
        (query.task === undefined || index === query.task) &&
        (query.sinceMs === undefined || atMs >= query.sinceMs),
    );
    let next = this.records.length;
    if (query.tailLines !== undefined) {
      found = found.slice(found.length - Math.min(query.tailLines, found.length));
    } else if (found.length > this.pageRecords) {
      found = found.slice(0, this.pageRecords);
      next = found.at(-1)?.seq ?? next;
    }
    return { records: found, next, complete: this.complete && next === this.records.length };
  };
}

interface Event {
  id: string;
  event: string;
  data: string;
}

/** A small EventSource: events as they come, and the last event id. */
export class Client {
  lastId = '';
  readonly events: Event[] = [];
  comments = 0;
  ended = false;
  status = 0;
  headers: IncomingMessage['headers'] = {};
  #response: IncomingMessage | undefined;

  async connect(url: string, lastEventId?: string): Promise<this> {
    const sent = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    const outgoing = httpRequest(url, { headers: sent, agent: false });
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    this.#response = response;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    response.setEncoding('utf8');
    let text = '';
    response.on('data', (part: string) => {
      const blocks = (text + part).split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) this.#block(block);
    });
    response.on('close', () => (this.ended = true));
    response.on('error', () => (this.ended = true));
    return this;
  }

  #block(block: string): void {
    const event: Event = { id: '', event: '', data: '' };
    for (const line of block.split('\n')) {
      if (line.startsWith(':')) this.comments++;
      const [, name, value = ''] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (name === 'id') this.lastId = event.id = value;
      if (name === 'event') event.event = value;
      if (name === 'data') event.data += value;
    }
    if (event.data !== '') this.events.push(event);
  }

  get texts(): (string | undefined)[] {
    return this.events
      .filter(({ event }) => event === 'log')
      .map(({ data }) => (JSON.parse(data) as LogRecordView).text);
  }

  leave(): void {
    this.#response?.destroy();
  }

  pause(): void {
    this.#response?.pause();
  }

  resume(): void {
    this.#response?.resume();
  }
}

export async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error('it did not happen in 10 s');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));
