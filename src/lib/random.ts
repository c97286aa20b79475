/**
 * Randomness, passed in: the system's for production, a seeded stream for tests and the simulator.
 */
import { randomBytes } from 'node:crypto';

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Lower-case hex of `byteCount` random bytes; unguessable in production. */
  hex(byteCount: number): string;
}

export const systemRandom: Random = {
  next: () => randomBytes(4).readUInt32LE() / 2 ** 32,
  hex: (byteCount) => randomBytes(byteCount).toString('hex'),
};

/** sfc32: small, fast and good enough that a seed names a whole simulated history. */
export function seededRandom(seed: number): Random {
  let a = 0x9e3779b9 ^ seed;
  let b = 0x243f6a88;
  let c = 0xb7e15162;
  let d = seed | 1;
  const word = (): number => {
    const t = (a + b + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t;
    return t >>> 0;
  };
  for (let i = 0; i < 12; i++) word();
  return {
    next: () => word() / 2 ** 32,
    hex(byteCount) {
      let text = '';
      while (text.length < byteCount * 2) text += word().toString(16).padStart(8, '0');
      return text.slice(0, byteCount * 2);
    },
  };
}
