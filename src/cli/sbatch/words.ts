/** Finds the #SBATCH lines of a script and cuts them into words, as sbatch itself does. */
import { UsageError } from '../args.ts';

export interface ScriptWord {
  text: string;
  line: number;
}

const MARK = '#SBATCH';

/** Up to the first line that is neither empty nor a comment; what follows is the shell's. */
export function scriptWords(script: string, file: string): ScriptWord[] {
  const words: ScriptWord[] = [];
  for (const [at, text] of script.split('\n').entries()) {
    const line = at + 1;
    if (text.startsWith(MARK)) {
      for (const word of splitLine(text.slice(MARK.length), `${file} line ${line}`)) {
        words.push({ text: word, line });
      }
    } else if (!/^\s*(#|$)/.test(text)) {
      break;
    }
  }
  return words;
}

/** One or two pairs of quotes group; a backslash keeps the next character; # ends the line. */
function splitLine(text: string, where: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (quote === '' && /\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === '\\') {
      word ??= '';
      // White space ends a word all the same, outside of quotes.
      const next = text[at + 1] ?? '';
      if (quote !== '' || !/^\s?$/.test(next)) word += text[++at] ?? '';
    } else if (character === quote) {
      quote = '';
    } else if (quote === '' && (character === '"' || character === "'")) {
      quote = character;
      word ??= '';
    } else if (quote === '' && character === '#') {
      break;
    } else {
      word = (word ?? '') + character;
    }
  }
  if (quote !== '') {
    throw new UsageError(`${where}: a ${quote} has no other end`, 'close it on the same line');
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** What sbatch refuses too: a file that no kernel would run, or that Windows has saved. */
export function checkScript(script: string, file: string): void {
  if (!script.startsWith('#!')) {
    throw new UsageError(
      `${file} does not look like a batch script: its first line does not start with #!`,
      'let it begin with #!/bin/bash, or give a command with --wrap',
    );
  }
  if (script.includes('\r\n')) {
    const hint = `sed -i 's/\\r$//' ${file}`;
    throw new UsageError(`${file} has DOS line ends, which no shell would take`, hint);
  }
  if (script.includes('\0')) throw new UsageError(`${file} holds a NUL: it is no script`);
}
