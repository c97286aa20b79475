/** Server-sent events, however the network cuts them. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { readEvents, SSE_EVENT_LIMIT_CHARS, type SseEvent } from './sse.ts';

async function read(chunks: Uint8Array[]): Promise<SseEvent[]> {
  const events: SseEvent[] = [];
  async function* source(): AsyncGenerator<Uint8Array> {
    yield* chunks;
  }
  for await (const event of readEvents(source())) events.push(event);
  return events;
}

const text =
  'retry: 5\n\n: comment\n\nid: 1\nevent: log\ndata: {"a":"é😀"}\n\n' +
  'id: 2\r\ndata: x\r\ndata:y\r\n\r\n' +
  'id: 3\n\ndata\n\nevent: end\ndata: {}\n\nid: 9\ndata: cut off';

test('events come out the same however the bytes were cut', async () => {
  const expected = [
    { id: '1', event: 'log', data: '{"a":"é😀"}' },
    { id: '2', event: 'message', data: 'x\ny' },
    { id: '3', event: 'message', data: '' },
    { id: '3', event: 'end', data: '{}' },
  ];
  const bytes = Buffer.from(text);
  const cuts = fc.array(fc.nat(bytes.length), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(cuts, async (places) => {
      const at = [0, ...places.toSorted((a, b) => a - b), bytes.length];
      const chunks = at.slice(1).map((end, i) => bytes.subarray(at[i], end));
      expect(await read(chunks)).toEqual(expected);
    }),
  );
});

test('an event without end is refused', async () => {
  const chunk = Buffer.alloc(SSE_EVENT_LIMIT_CHARS / 4, 'x');
  await expect(read([chunk, chunk, chunk, chunk, chunk])).rejects.toThrow('size limit');
});
