/** Cuts a run of output into records: whole lines where possible, else whole characters. */
import { isUtf8 } from 'node:buffer';

const NEWLINE = 0x0a;
/** A UTF-8 character has at most 4 bytes, so at most 3 of an unfinished one. */
const MAX_PARTIAL_CHARACTER_BYTES = 3;

export function splitRecords(bytes: Buffer, recordBytes: number): Buffer[] {
  const pieces: Buffer[] = [];
  // Half a character at either end would turn the whole record into base64: keep it apart.
  const lead = leadingContinuations(bytes);
  if (lead > 0) pieces.push(bytes.subarray(0, lead));
  let rest = bytes.subarray(lead);
  while (rest.length > 0) {
    const end = nextCut(rest, recordBytes);
    pieces.push(rest.subarray(0, end));
    rest = rest.subarray(end);
  }
  return pieces;
}

function nextCut(rest: Buffer, recordBytes: number): number {
  const window = rest.length > recordBytes ? rest.subarray(0, recordBytes) : rest;
  const newline = window.lastIndexOf(NEWLINE);
  if (newline !== -1) return newline + 1;
  const end = characterBoundary(window);
  return end > 0 ? end : window.length;
}

/** Bytes at the start that finish a character begun before; 0 when that is not what they are. */
function leadingContinuations(bytes: Buffer): number {
  let count = 0;
  while (count < bytes.length && isContinuation(bytes[count] ?? 0)) count++;
  return count <= MAX_PARTIAL_CHARACTER_BYTES ? count : 0;
}

/** The largest length up to which no character is cut; the whole length for what is not UTF-8. */
function characterBoundary(bytes: Buffer): number {
  const lowest = Math.max(0, bytes.length - MAX_PARTIAL_CHARACTER_BYTES);
  for (let at = bytes.length - 1; at >= lowest; at--) {
    const byte = bytes[at] ?? 0;
    if (isContinuation(byte)) continue;
    const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return bytes.length - at < wanted ? at : bytes.length;
  }
  return bytes.length;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** How the bytes of a record are shown: as text where they are UTF-8, untouched otherwise. */
export function renderBytes(bytes: Buffer): { text: string } | { base64: string } {
  return isUtf8(bytes) ? { text: bytes.toString('utf8') } : { base64: bytes.toString('base64') };
}

/** Where a stream stands: its next offset, and the bytes of the line it is in. */
export interface Cursor {
  end: number;
  lineBytes: number;
}

export function startsLine(cursor: Cursor, lineBytes: number): boolean {
  return cursor.lineBytes === 0 || cursor.lineBytes >= lineBytes;
}

/** Moves the cursor over a record of output. */
export function advance(cursor: Cursor, lineStart: boolean, payload: Buffer): void {
  const newline = payload.lastIndexOf(NEWLINE);
  cursor.end += payload.length;
  if (newline !== -1) cursor.lineBytes = payload.length - 1 - newline;
  else cursor.lineBytes = (lineStart ? 0 : cursor.lineBytes) + payload.length;
}
