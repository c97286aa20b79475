/** A binary heap: the first in order is at hand, and what stands first may change its rank. */

export class Heap<Item> {
  readonly #items: Item[] = [];
  readonly #before: (a: Item, b: Item) => boolean;

  constructor(before: (a: Item, b: Item) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  top(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#before(item, items[parent] as Item)) break;
      items[at] = items[parent] as Item;
      at = parent;
    }
    items[at] = item;
  }

  pop(): Item | undefined {
    const top = this.#items[0];
    const last = this.#items.pop();
    if (last === undefined || this.#items.length === 0) return top;
    this.#sink(last);
    return top;
  }

  /** The top may stand further back now. */
  settleTop(): void {
    const top = this.#items[0];
    if (top !== undefined) this.#sink(top);
  }

  items(): readonly Item[] {
    return this.#items;
  }

  /** Puts the item where the top was, then where it belongs. */
  #sink(item: Item): void {
    const items = this.#items;
    const { length } = items;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= length) break;
      if (child + 1 < length && this.#before(items[child + 1] as Item, items[child] as Item)) {
        child++;
      }
      if (!this.#before(items[child] as Item, item)) break;
      items[at] = items[child] as Item;
      at = child;
    }
    items[at] = item;
  }
}
