/** Words for `sh`. */

/** One word, whatever it holds; NUL cannot be in one. */
export function quote(word: string): string {
  if (word.includes('\0')) throw new Error('a NUL cannot be part of a command');
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

export function commandLine(command: string | readonly string[]): string {
  return typeof command === 'string' ? command : command.map((word) => quote(word)).join(' ');
}
