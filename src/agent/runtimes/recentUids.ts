/** The uids of attempts that were forgotten lately: a late order that repeats one is refused. */

/** Far more than a controller could still have on the way. */
const LIMIT = 10_000;

export class RecentUids {
  readonly #uids = new Set<string>();

  has(uid: string): boolean {
    return this.#uids.has(uid);
  }

  add(uid: string): void {
    this.#uids.add(uid);
    if (this.#uids.size <= LIMIT) return;
    const [oldest] = this.#uids;
    this.#uids.delete(oldest!);
  }
}
