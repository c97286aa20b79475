/** Money as people write it, in millionths inside: 4.10 is 4,100,000. Drover knows no currency. */
import { UsageError } from './args.ts';

export { showMoney } from '../lib/show.ts';

const MICROS = 1_000_000;

export function parseMoney(text: string, what: string): number {
  const match = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text.trim());
  if (!match) {
    const hint = 'write it without a currency: 4.10 or 25';
    throw new UsageError(`${what} ${JSON.stringify(text)} is not an amount of money`, hint);
  }
  return Number(match[1]) * MICROS + Number((match[2] ?? '').padEnd(6, '0'));
}
