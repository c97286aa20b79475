/** Reads server-sent events from a stream of bytes, as the HTML standard defines them. */

export interface SseEvent {
  /** `message` when the server named none. */
  event: string;
  data: string;
  /** The last id seen on the stream, empty before the first. */
  id: string;
}

/** An event larger than this is not one of ours: stop rather than fill the memory. */
export const SSE_EVENT_LIMIT_CHARS = 32 * 1024 * 1024;

export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<SseEvent> {
  const fields = new EventFields();
  for await (const line of readLines(chunks)) {
    const complete = fields.take(line);
    if (complete) yield complete;
  }
  // An event cut off by the end of the stream is dropped: its id was never acknowledged.
}

/** Lines end in LF or CRLF; a lone CR, which the standard also allows, no server of ours sends. */
async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
      const line = rest + text.slice(from, at);
      rest = '';
      from = at + 1;
      yield line.endsWith('\r') ? line.slice(0, -1) : line;
    }
    rest += text.slice(from);
    if (rest.length > SSE_EVENT_LIMIT_CHARS)
      throw new RangeError('an event exceeds the size limit');
  }
}

class EventFields {
  #event = '';
  #data: string[] = [];
  #chars = 0;
  #id = '';

  /** Returns the event that this line completes, if it does. */
  take(line: string): SseEvent | undefined {
    if (line === '') return this.#complete();
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') this.#event = value;
    else if (field === 'id') this.#id = value;
    else if (field === 'data') {
      this.#chars += value.length;
      if (this.#chars > SSE_EVENT_LIMIT_CHARS)
        throw new RangeError('an event exceeds the size limit');
      this.#data.push(value);
    }
    return undefined;
  }

  #complete(): SseEvent | undefined {
    const complete =
      this.#data.length === 0
        ? undefined
        : { event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id };
    this.#event = '';
    this.#data = [];
    this.#chars = 0;
    return complete;
  }
}
