/**
 * Copies of plain data: what crosses a network or a thread is never the same object on both sides.
 */

export function copyOf<Data>(data: Data): Data {
  if (typeof data !== 'object' || data === null) return data;
  if (data instanceof Uint8Array) return data.slice() as Data;
  if (Array.isArray(data)) return data.map(copyOf) as Data;
  const copy: Record<string, unknown> = {};
  for (const key in data) copy[key] = copyOf(data[key]);
  return copy as Data;
}
