/**
 * Gives back the memory of bytes that came from a socket and were copied. To leave that to the
 * garbage collector costs as much as receiving them: it sees the small object, not the 64 KiB.
 */
export function freeMemory(chunk: Uint8Array): void {
  const { buffer } = chunk;
  // A slice has neighbours that somebody may still need.
  if (chunk.byteLength === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
