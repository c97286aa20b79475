/** Aligned columns for a person: safe against control characters, cut to the terminal's width. */
import type { CliIo, Paint } from './io.ts';
import { colours } from './io.ts';

export interface Column<Row> {
  title: string;
  value(row: Row): string;
  paint?(row: Row, paint: Paint): ((text: string) => string) | undefined;
}

const GAP = '  ';
const segments = new Intl.Segmenter();
/** Two columns each: East Asian letters and full-width forms, and emoji. */
const WIDE_LETTER = /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]/u;
const EMOJI = /^\p{Emoji_Presentation}/u;

export async function printTable<Row>(
  io: CliIo,
  rows: Row[],
  columns: Column<Row>[],
): Promise<void> {
  const paint = colours(io, io.stdout);
  const cells = rows.map((row) => columns.map((column) => printable(column.value(row))));
  const titles = columns.map((column) => column.title);
  const widths = columns.map((_, at) =>
    Math.max(...[titles, ...cells].map((line) => displayWidth(line[at]!))),
  );
  const room = io.stdout.isTTY && io.stdout.columns > 0 ? io.stdout.columns : Infinity;
  const draw = (line: string[], dress: (text: string, at: number) => string): string => {
    let left = room;
    const parts = line.map((cell, at) => {
      const last = at === line.length - 1;
      const shown = cut(last ? cell : pad(cell, widths[at]!), Math.max(0, left));
      left -= displayWidth(shown) + GAP.length;
      return dress(shown, at);
    });
    return parts.join(GAP).trimEnd();
  };
  const lines = [draw(titles, (text) => paint.dim(text))];
  for (const [index, row] of rows.entries()) {
    lines.push(draw(cells[index]!, (text, at) => columns[at]!.paint?.(row, paint)?.(text) ?? text));
  }
  await io.stdout.write(`${lines.join('\n')}\n`);
}

/** Names come from anyone: a control character must not move the cursor or hide a line. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '�');
}

function displayWidth(text: string): number {
  if (/^[\u0020-\u007e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segments.segment(text)) {
    width += WIDE_LETTER.test(segment) || EMOJI.test(segment) ? 2 : 1;
  }
  return width;
}

function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}

function cut(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = '';
  let used = 0;
  for (const { segment } of segments.segment(text)) {
    used += displayWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return width > 0 ? `${kept}…` : '';
}
