/** Cursors: where a list goes on, opaque to callers, checked when they come back. */
import { DroverError } from '../lib/errors.ts';
import type { Page } from '../protocol/coordinator.ts';
import { isClean } from '../protocol/texts.ts';

/**
 * A page of a list that was asked for one item more than it shows: that one tells whether there is
 * more.
 */
export function cutPage<Item>(
  found: Item[],
  limit: number,
  position: (last: Item) => (string | number)[],
): Page<Item> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const more = found.length > limit && last !== undefined;
  return { items, nextCursor: more ? encodeCursor(position(last)) : null };
}

export function encodeCursor(position: (string | number)[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

export function decodeNumbers(cursor: string | undefined, start: number[]): number[] {
  if (cursor === undefined) return start;
  const position = parse(cursor);
  if (position.length === start.length && position.every((part) => Number.isSafeInteger(part))) {
    return position as number[];
  }
  throw invalid(cursor);
}

export function decodeText(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const [text, ...rest] = parse(cursor);
  // No database looks for what it cannot hold.
  if (typeof text === 'string' && isClean(text) && rest.length === 0) return text;
  throw invalid(cursor);
}

function parse(cursor: string): unknown[] {
  try {
    const position: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(position)) return position;
  } catch (cause) {
    throw new DroverError('INVALID_ARGUMENT', notACursor(cursor), { cause });
  }
  throw invalid(cursor);
}

function invalid(cursor: string): DroverError {
  return new DroverError('INVALID_ARGUMENT', notACursor(cursor), {
    hint: 'pass meta.nextCursor of the page before, unchanged',
  });
}

function notACursor(cursor: string): string {
  return `"${cursor.slice(0, 50)}" is not a cursor of this list`;
}
