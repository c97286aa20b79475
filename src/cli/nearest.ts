/** The known name closest to a mistyped one. */

export function nearest(word: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  // More than a third of the letters wrong is another word, not a slip.
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const name of names) {
    const prefixed = word.length >= 2 && name.startsWith(word);
    const distance = prefixed ? 1 : editDistance(word.toLowerCase(), name.toLowerCase());
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours each cost one. */
function editDistance(a: string, b: string): number {
  let older: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        previous[column]! + 1,
        current[column - 1]! + 1,
        previous[column - 1]! + (same ? 0 : 1),
      );
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped && row > 1 && column > 1) cost = Math.min(cost, older[column - 2]! + 1);
      current.push(cost);
    }
    older = previous;
    previous = current;
  }
  return previous[b.length]!;
}
