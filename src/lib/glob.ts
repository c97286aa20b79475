/** Patterns in which `*` stands for any characters, also none, and nothing else is special. */

/** Matched piece by piece from the left, never back: no pattern and no text takes long. */
export class Glob {
  readonly text: string;
  readonly #pieces: readonly string[];

  constructor(text: string) {
    this.text = text;
    this.#pieces = text.split('*');
  }

  /** Without a star: it matches itself alone. */
  get isPlain(): boolean {
    return this.#pieces.length === 1;
  }

  matches(value: string): boolean {
    const [first = '', ...others] = this.#pieces;
    const last = others.pop();
    if (last === undefined) return value === first;
    if (value.length < first.length + last.length) return false;
    if (!value.startsWith(first) || !value.endsWith(last)) return false;
    const end = value.length - last.length;
    let at = first.length;
    for (const piece of others) {
      const found = value.indexOf(piece, at);
      if (found < 0 || found + piece.length > end) return false;
      at = found + piece.length;
    }
    return true;
  }
}

export function anyMatches(globs: readonly Glob[], value: string): boolean {
  return globs.some((glob) => glob.matches(value));
}
