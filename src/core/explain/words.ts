/** Amounts in words that a person reads. */

export function count(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? '' : 's'}`;
}

/** `0.5 devices`, `1 device`. */
export function named(amount: number, noun: string): string {
  return count(Number(amount.toFixed(3)), noun);
}

export function duration(ms: number): string {
  if (ms < 60_000) return count(Math.ceil(ms / 1000), 'second');
  const minutes = Math.round(ms / 60_000);
  if (minutes < 60) return count(minutes, 'minute');
  return count(Number((ms / 3_600_000).toFixed(1)), 'hour');
}

/** Millionths, to the cent. */
export function money(micros: number): string {
  return (micros / 1_000_000).toFixed(2);
}

export function gigabytes(bytes: number): string {
  return `${Number((bytes / 2 ** 30).toFixed(1))} GiB`;
}
