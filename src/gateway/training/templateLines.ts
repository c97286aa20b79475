/** Which line of a template a line of the text it rendered to came from. */

/** Of the private use area: values carry them only as escapes, see template.ts. */
const [OPEN, CLOSE] = ['\ue000', '\ue001'];
const MARK = new RegExp(`${OPEN}(\\d+)${CLOSE}`, 'g');
/** After these a mark could come between a tag and the blanks it takes away. */
const NO_MARK_AFTER = /(%\}|#\}|-\}\}|^)$/;

/** Puts its number at the end of each line that says something. */
export function markLines(text: string): string {
  let insideTag = false;
  const marked = text.split('\n').map((line, at) => {
    insideTag = endsInsideTag(line, insideTag);
    const said = line.trimEnd();
    if (insideTag || NO_MARK_AFTER.test(said)) return line;
    return `${said}${OPEN}${at + 1}${CLOSE}${line.slice(said.length)}`;
  });
  return marked.join('\n');
}

function endsInsideTag(line: string, before: boolean): boolean {
  const opened = Math.max(...['{{', '{%', '{#'].map((tag) => line.lastIndexOf(tag)));
  const closed = Math.max(...['}}', '%}', '#}'].map((tag) => line.lastIndexOf(tag)));
  return opened === -1 && closed === -1 ? before : opened > closed;
}

export interface MappedText {
  text: string;
  /** Of a line of `text`, both counted from 1. */
  lineOf(line: number): number;
}

export function takeMarks(rendered: string): MappedText {
  const lines: number[] = [];
  let last = 1;
  const text = rendered
    .split('\n')
    .map((line) => {
      for (const [, number] of line.matchAll(MARK)) last = Number(number);
      lines.push(last);
      return line.replaceAll(MARK, '');
    })
    .join('\n');
  return { text, lineOf: (line) => lines[line - 1] ?? last };
}
