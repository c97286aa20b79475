/** A flame graph as SVG, from folded stacks: `outermost;…;innermost COUNT` a line. */

interface Frame {
  name: string;
  count: number;
  children: Map<string, Frame>;
}

const WIDTH = 1200;
const ROW = 17;
const MARGIN = 10;
const HEADER = 44;
const FONT_SIZE = 11;
const LETTER_WIDTH = 6.6;
/** Narrower frames would be a smear of thousands; their time stays visible in their parent. */
const NARROWEST = 0.4;
/** Deeper frames are cut: a recursion that ran away is known by its first hundreds. */
const DEEPEST = 500;

export function flameGraph(folded: string, title: string): string {
  const root = parseFolded(folded);
  const rows: string[] = [];
  const scale = (WIDTH - 2 * MARGIN) / Math.max(1, root.count);
  const depth = draw(rows, root, { x: MARGIN, depth: 0, scale, total: root.count });
  const height = HEADER + (depth + 1) * ROW + MARGIN;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" ` +
    `viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="${FONT_SIZE}">\n` +
    `<rect width="100%" height="100%" fill="#fffdf8"/>\n` +
    `<text x="${WIDTH / 2}" y="26" font-size="15" text-anchor="middle">${escape(title)}</text>\n` +
    `${rows.join('\n')}\n</svg>\n`
  );
}

/** Lines that are none are passed over; counts of the same stack add up. */
function parseFolded(folded: string): Frame {
  const root: Frame = { name: 'all', count: 0, children: new Map() };
  for (const line of folded.split('\n')) {
    const found = /^(.+) (\d+)\s*$/.exec(line);
    if (found === null) continue;
    const count = Number(found[2]);
    root.count += count;
    let at = root;
    for (const name of found[1]!.split(';').slice(0, DEEPEST)) {
      let child = at.children.get(name);
      if (child === undefined)
        at.children.set(name, (child = { name, count: 0, children: new Map() }));
      child.count += count;
      at = child;
    }
  }
  return root;
}

/** Callers above callees; each caller's callees by name, so that two graphs can be compared. */
function draw(
  rows: string[],
  frame: Frame,
  place: { x: number; depth: number; scale: number; total: number },
): number {
  const { x, depth, scale, total } = place;
  rows.push(frameSvg(frame, { x, y: HEADER + depth * ROW, width: frame.count * scale, total }));
  let deepest = depth;
  let at = x;
  const children = [...frame.children.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  for (const child of children) {
    const width = child.count * scale;
    if (width >= NARROWEST) {
      deepest = Math.max(deepest, draw(rows, child, { ...place, x: at, depth: depth + 1 }));
    }
    at += width;
  }
  return deepest;
}

function frameSvg(
  { name, count }: Frame,
  { x, y, width, total }: { x: number; y: number; width: number; total: number },
): string {
  const share = ((count / Math.max(1, total)) * 100).toFixed(1);
  const letters = Math.floor((width - 6) / LETTER_WIDTH);
  const label =
    name.length <= letters ? name : letters > 3 ? `${name.slice(0, letters - 2)}..` : '';
  const text =
    label === '' ? '' : `<text x="${(x + 3).toFixed(1)}" y="${y + 12}">${escape(label)}</text>`;
  return (
    `<g><title>${escape(name)} (${count} samples, ${share} %)</title>` +
    `<rect x="${x.toFixed(1)}" y="${y}" width="${Math.max(0.3, width - 0.3).toFixed(1)}" ` +
    `height="${ROW - 1}" rx="1.5" fill="${colourOf(name)}"/>${text}</g>`
  );
}

/** Warm, and the same for the same name. */
function colourOf(name: string): string {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)!) % 9973;
  return `hsl(${10 + (sum % 45)}, ${65 + (sum % 25)}%, ${62 + (sum % 13)}%)`;
}

/** XML has no way to write most control characters, escaped or not. */
function escape(text: string): string {
  return text
    .replaceAll(/[^\t\x20-\ud7ff\ue000-\ufffd]/gu, '?')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
