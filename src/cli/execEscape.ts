/**
 * The way out of a session whose command does not answer: `~.` at the beginning of a line, as in
 * ssh.
 */

const TILDE = 0x7e;
const DOT = 0x2e;
const LINE_ENDS = new Set([0x0a, 0x0d]);

export interface Typed {
  /** What goes to the command. */
  bytes: Buffer;
  isLeaving: boolean;
}

/** `~~` sends one tilde; a tilde before anything else is sent with it. */
export function escapeFilter(): (typed: Buffer) => Typed {
  let place: 'line start' | 'tilde' | 'line' = 'line start';
  return (typed) => {
    const bytes: number[] = [];
    for (const byte of typed) {
      if (place === 'tilde' && byte === DOT) return { bytes: Buffer.from(bytes), isLeaving: true };
      if (place === 'tilde') bytes.push(TILDE);
      if (place === 'line start' && byte === TILDE) {
        place = 'tilde';
        continue;
      }
      if (place !== 'tilde' || byte !== TILDE) bytes.push(byte);
      place = LINE_ENDS.has(byte) ? 'line start' : 'line';
    }
    return { bytes: Buffer.from(bytes), isLeaving: false };
  };
}
