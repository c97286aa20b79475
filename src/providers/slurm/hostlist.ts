/** Names of nodes as Slurm writes them: `n[01-03,7],login,r[1-2]c[1-4]`. */

/** Of one list; the largest sites have a tenth of it. */
export const HOSTLIST_NODES = 100_000;

/** Every name of the list, once; undefined where it is no such list, or too long a one. */
export function expandHostlist(text: string): string[] | undefined {
  const names = new Set<string>();
  for (const part of splitOutside(text.trim())) {
    if (part === '') continue;
    const found = expandOne(part);
    if (!found) return undefined;
    for (const name of found) names.add(name);
    if (names.size > HOSTLIST_NODES) return undefined;
  }
  return [...names];
}

/** At the commas that are not between brackets. */
function splitOutside(text: string): string[] {
  const parts: string[] = [];
  let [depth, from] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '[') depth++;
    else if (text[at] === ']') depth--;
    else if (text[at] === ',' && depth === 0) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return [...parts, text.slice(from)];
}

function expandOne(part: string): string[] | undefined {
  const match = /^([^[\],\s]*)\[([^[\]\s]+)\](.*)$/.exec(part);
  if (!match) return /^[^[\],\s]+$/.test(part) ? [part] : undefined;
  const [, before = '', ranges = '', after = ''] = match;
  const numbers = expandRanges(ranges);
  const rest = after === '' ? [''] : expandOne(after);
  if (!numbers || !rest || numbers.length * rest.length > HOSTLIST_NODES) return undefined;
  return numbers.flatMap((number) => rest.map((tail) => before + number + tail));
}

/** `01-03` keeps its zeros. */
function expandRanges(text: string): string[] | undefined {
  const found: string[] = [];
  for (const range of text.split(',')) {
    const match = /^(\d{1,12})(?:-(\d{1,12}))?$/.exec(range);
    if (!match) return undefined;
    const first = match[1] ?? '';
    const last = match[2] ?? first;
    const [from, to] = [Number(first), Number(last)];
    if (to < from || found.length + (to - from) >= HOSTLIST_NODES) return undefined;
    for (let n = from; n <= to; n++) found.push(String(n).padStart(first.length, '0'));
  }
  return found;
}
