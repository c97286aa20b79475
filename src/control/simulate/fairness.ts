/**
 * How even what tenants hold is, beside what each could have of an even split: a tenant that asks
 * for little is not wronged by having little.
 */

/** A tenant with work waiting, in dominant shares. */
export interface Holder {
  weight: number;
  held: number;
  /** With what it waits for. */
  wanted: number;
}

/**
 * Jain's index (the square of the sum over n times the sum of squares) over what each holds as a
 * part of its due. Due is the max-min fair split of what they hold together: to each by its weight,
 * but no more than it wants, and what it leaves goes to the others. Null: nobody holds anything, or
 * there are no two.
 */
export function fairnessOf(holders: Holder[]): number | null {
  const all = holders.reduce((sum, { held }) => sum + held, 0);
  if (holders.length < 2 || all === 0) return null;
  const modestFirst = holders.toSorted((a, b) => a.wanted / a.weight - b.wanted / b.weight);
  let left = all;
  let weights = holders.reduce((sum, { weight }) => sum + weight, 0);
  let sum = 0;
  let squares = 0;
  for (const { weight, held, wanted } of modestFirst) {
    const due = Math.min(wanted, (left * weight) / weights);
    left -= due;
    weights -= weight;
    const part = due > 0 ? held / due : 1;
    sum += part;
    squares += part ** 2;
  }
  return sum ** 2 / (holders.length * squares);
}
