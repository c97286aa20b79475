/** A broken invariant: which one, and what was seen. */

export class Violation extends Error {
  readonly invariant: string;

  constructor(invariant: string, detail: string) {
    super(`${invariant}: ${detail}`);
    this.name = 'Violation';
    this.invariant = invariant;
  }
}

export function must(condition: boolean, invariant: string, detail: () => string): void {
  if (!condition) throw new Violation(invariant, detail());
}
