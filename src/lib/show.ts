/** Durations, money and sizes as a person reads them. */

const MICROS = 1_000_000;
const SIZES = ['', 'K', 'M', 'G', 'T'] as const;

/** Two units at most: 45s, 12m, 2h5m, 3d4h. */
export function shortDuration(durationMs: number): string {
  const seconds = Math.max(0, Math.floor(durationMs / 1000));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return pair(minutes, 'm', minutes < 10 ? seconds % 60 : 0, 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return pair(hours, 'h', minutes % 60, 'm');
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

/** Two places, more only where they say something: 4.10, 0.0025. No currency. */
export function showMoney(micros: number): string {
  const exact = (micros / MICROS).toFixed(6);
  return exact.replace(/(\.\d{2}\d*?)0+$/, '$1');
}

/** As `--mem` takes it, rounded up: 512M, 64G. */
export function memorySize(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1024 && unit < SIZES.length - 1) {
    amount /= 1024;
    unit++;
  }
  // Below ten a whole number would be too coarse for some and an odd fraction for others.
  const shown = amount < 10 ? Math.ceil(amount * 2) / 2 : Math.ceil(amount);
  return `${shown}${SIZES[unit]}`;
}
