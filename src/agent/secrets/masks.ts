/**
 * Hides secrets in output: each byte of one becomes a star, so that offsets stay what they are. A
 * secret that is written in another form (encoded, reversed) is not found; who has it can tell it.
 */
import { readFileSync } from 'node:fs';

/** In an attempt's directory: what its output must not show. */
export const MASKS_FILE = 'masks.json';
/** The same of what changes while it runs. */
export const TOKEN_MASKS_FILE = 'token-masks.json';

/** Shorter texts are everywhere: hiding them would tell more than it hides. */
const SHORTEST_MASK = 6;
const STAR = 0x2a;

/** Secrets of several lines, keys for instance, are also looked for line by line. */
export function masksOf(secrets: readonly string[]): string[] {
  const all = secrets.flatMap((secret) => [secret, ...secret.split(/\r?\n/)]);
  const masks = [...new Set(all)].filter((text) => text.length >= SHORTEST_MASK);
  // The longest first: one that holds another is hidden whole.
  return masks.toSorted((a, b) => b.length - a.length);
}

export function readMasks(path: string): Buffer[] {
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as string[]).map((mask) => Buffer.from(mask));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** In place. */
export function hide(bytes: Buffer, masks: readonly Buffer[]): void {
  for (const mask of masks) {
    for (let at = bytes.indexOf(mask); at !== -1; at = bytes.indexOf(mask, at + mask.length)) {
      bytes.fill(STAR, at, at + mask.length);
    }
  }
}

/** How much can be sent without cutting a secret in two: what may be the start of one waits. */
export function uncutLength(bytes: Buffer, masks: readonly Buffer[]): number {
  let length = bytes.length;
  for (const mask of masks) {
    const longest = Math.min(mask.length - 1, bytes.length);
    for (let part = longest; part > 0; part--) {
      const tail = bytes.subarray(bytes.length - part);
      if (tail.equals(mask.subarray(0, part))) {
        length = Math.min(length, bytes.length - part);
        break;
      }
    }
  }
  return length;
}
