/** Who will have waited too long when, and who has: so that nothing starves. */
import { Heap } from './heap.ts';
import type { PendingClass } from './classes.ts';

interface Alarm {
  atMs: number;
  pending: PendingClass;
}

export class Ageing {
  readonly #alarms = new Heap<Alarm>((a, b) => a.atMs < b.atMs);
  readonly #watched = new Set<PendingClass>();
  readonly #trying = new Set<PendingClass>();
  /** Blocked while another one has the band's reservation: by since when they wait. */
  readonly #inLine = new Map<number, Heap<Alarm>>();
  readonly #lined = new Set<PendingClass>();

  /** The head of a blocked class will have waited too long at that time. */
  watch(pending: PendingClass, atMs: number): void {
    if (this.#watched.has(pending)) return;
    this.#watched.add(pending);
    this.#alarms.push({ atMs, pending });
  }

  /** It is to be tried again then, whatever happens. */
  tryAt(pending: PendingClass, atMs: number): void {
    if (this.#trying.has(pending)) return;
    this.#trying.add(pending);
    this.#alarms.push({ atMs, pending });
  }

  /** Classes whose time has come. */
  due(nowMs: number): PendingClass[] {
    const due: PendingClass[] = [];
    for (let top = this.#alarms.top(); top && top.atMs <= nowMs; top = this.#alarms.top()) {
      this.#alarms.pop();
      this.#watched.delete(top.pending);
      this.#trying.delete(top.pending);
      if (top.pending.waiting > 0) due.push(top.pending);
    }
    return due;
  }

  nextAtMs(): number | null {
    return this.#alarms.top()?.atMs ?? null;
  }

  /** It wants to be the next to have a place kept for it. */
  line(pending: PendingClass, sinceMs: number): void {
    if (this.#lined.has(pending)) return;
    this.#lined.add(pending);
    const { band } = pending.request;
    let line = this.#inLine.get(band);
    if (!line) this.#inLine.set(band, (line = new Heap<Alarm>((a, b) => a.atMs < b.atMs)));
    line.push({ atMs: sinceMs, pending });
  }

  /** It has one, or will not get one. */
  leave(pending: PendingClass): void {
    this.#lined.delete(pending);
  }

  /** Who has waited longest of those that want a place kept, and since when. */
  first(band: number): Alarm | null {
    const line = this.#inLine.get(band);
    if (!line) return null;
    for (let top = line.top(); top; top = line.top()) {
      const head = top.pending.queue.peek()?.[0];
      const there = head && this.#lined.has(top.pending);
      if (there && head.sinceMs === top.atMs) return top;
      line.pop();
      if (there) line.push({ atMs: head.sinceMs, pending: top.pending });
      else this.#lined.delete(top.pending);
    }
    return null;
  }
}
