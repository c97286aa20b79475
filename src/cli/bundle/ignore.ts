/** What a folder's .gitignore and .droverignore leave out, by git's own rules. */

interface Rule {
  pattern: RegExp;
  negated: boolean;
  foldersOnly: boolean;
}

/** The rules of one file, which hold below the folder it lies in. */
export interface IgnoreFile {
  /** A path of the walk as that folder sees it. */
  seen: (path: string) => string;
  rules: Rule[];
}

export function parseIgnore(text: string, seen: IgnoreFile['seen']): IgnoreFile {
  const rules = text.split(/\r?\n/).flatMap((line) => parseLine(line) ?? []);
  return { seen, rules };
}

/**
 * Whether the last rule that fits says so; later files and lines win. The caller does not descend
 * into what is ignored, so a negation below an ignored folder has no effect, as in git.
 */
export function isIgnored(files: readonly IgnoreFile[], path: string, isFolder: boolean): boolean {
  for (const { seen, rules } of files.toReversed()) {
    const below = seen(path);
    for (let at = rules.length - 1; at >= 0; at--) {
      const rule = rules[at]!;
      if (rule.foldersOnly && !isFolder) continue;
      if (rule.pattern.test(below)) return !rule.negated;
    }
  }
  return false;
}

function parseLine(line: string): Rule | undefined {
  let text = line.replace(/(?<!\\) +$/, '');
  if (text === '' || text.startsWith('#')) return undefined;
  const negated = text.startsWith('!');
  if (negated) text = text.slice(1);
  const foldersOnly = text.endsWith('/');
  if (foldersOnly) text = text.slice(0, -1);
  // A slash at the beginning or inside ties it to the file's own folder.
  const tied = text.includes('/');
  const body = text.replace(/^\//, '');
  if (body === '') return undefined;
  const source = (tied ? '^' : '^(?:.*/)?') + expression(body) + '$';
  try {
    return { pattern: new RegExp(source, 's'), negated, foldersOnly };
  } catch {
    // A range like [z-a]: git takes such a line as one that matches nothing.
    return undefined;
  }
}

/** A glob as a regular expression. */
function expression(glob: string): string {
  let out = '';
  for (let at = 0; at < glob.length; at++) {
    const char = glob[at]!;
    if (char === '\\') {
      at++;
      out += escaped(glob[at] ?? '\\');
    } else if (char === '*') {
      const stars = /^\*+/.exec(glob.slice(at))![0].length;
      const whole = stars === 2 && (at === 0 || glob[at - 1] === '/');
      if (whole && glob[at + 2] === '/') {
        out += '(?:.*/)?';
        at += 2;
      } else if (whole && at + 2 === glob.length) {
        out += '.*';
        at += 1;
      } else {
        out += '[^/]*';
        at += stars - 1;
      }
    } else if (char === '?') out += '[^/]';
    else if (char === '[') {
      const set = readSet(glob, at);
      out += set?.source ?? '(?!)';
      at = set?.end ?? glob.length;
    } else out += escaped(char);
  }
  return out;
}

const CLASSES: Record<string, string> = {
  alnum: 'A-Za-z0-9',
  alpha: 'A-Za-z',
  blank: ' \\t',
  digit: '0-9',
  lower: 'a-z',
  punct: '!-/:-@\\[-`{-~',
  space: '\\s',
  upper: 'A-Z',
  xdigit: '0-9A-Fa-f',
};

/** Undefined where it is not closed: such a pattern fits nothing. */
function readSet(glob: string, from: number): { source: string; end: number } | undefined {
  let at = from + 1;
  const negated = glob[at] === '!' || glob[at] === '^';
  if (negated) at++;
  let body = '';
  for (let first = true; at < glob.length; at++, first = false) {
    const char = glob[at]!;
    const named = /^\[:([a-z]+):\]/.exec(glob.slice(at));
    if (char === ']' && !first) {
      return { source: negated ? `(?!/)[^${body}]` : `(?!/)[${body}]`, end: at };
    }
    if (named) {
      body += CLASSES[named[1]!] ?? '';
      at += named[0].length - 1;
    } else if (char === '\\') body += escaped(glob[++at] ?? '\\');
    else body += char === '-' ? '-' : escaped(char);
  }
  return undefined;
}

function escaped(char: string): string {
  return /[\\^$.*+?()[\]{}|/-]/.test(char) ? `\\${char}` : char;
}
