/** Finds the known name that a mistyped one most likely means. */

/** The nearest of `known`, or `null` where none is near enough to be meant. */
export function nearest(name: string, known: readonly string[]): string | null {
  let best: { readonly name: string; readonly distance: number } | null = null;
  for (const candidate of known) {
    const distance = editDistance(squashed(name), squashed(candidate));
    if (best === null || distance < best.distance) best = { name: candidate, distance };
  }
  if (best === null) return null;
  const longest = Math.max(name.length, best.name.length);
  return best.distance <= Math.max(1, Math.floor(longest / 3)) ? best.name : null;
}

/** `maxRemovals`, `max-removals` and `max_removals` are one word to the person who typed them. */
function squashed(name: string): string {
  return name.slice(0, 64).toLowerCase().replaceAll(/[-_ ]/g, '');
}

/** Optimal string alignment distance: insertion, deletion, substitution, and a swap of neighbours, cost 1 each. */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = at(previous, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let cost = Math.min(at(previous, j) + 1, at(current, j - 1) + 1, substitution);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) cost = Math.min(cost, at(beforePrevious, j - 2) + 1);
      current.push(cost);
    }
    beforePrevious = previous;
    previous = current;
  }
  return at(previous, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
