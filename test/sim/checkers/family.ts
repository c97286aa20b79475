/** I15: what a job submitted ends with it, unless told to go on; an ended one submits nothing. */
import { unpackSpec } from '../../../src/model/spec.ts';
import type { Commit, Mirror } from './mirror.ts';
import { must } from './violation.ts';

export class FamilyChecker {
  readonly #mirror: Mirror;
  readonly #children = new Map<string, string[]>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  committed({ jobs }: Commit): void {
    const endedNow = new Set<string>();
    for (const { before, row } of jobs) {
      if (row.ended_at_ms !== null && (before?.ended_at_ms ?? null) === null) endedNow.add(row.id);
    }
    for (const { before, row } of jobs) {
      if (before || row.parent === null) continue;
      const parent = this.#mirror.jobs.get(row.parent);
      const lived = parent?.ended_at_ms === null || endedNow.has(row.parent);
      must(lived, 'I15', () => `${row.id} was submitted by ${row.parent}, which had ended`);
      must(row.root !== null, 'I15', () => `${row.id} has a parent and no root`);
      this.#children.set(row.parent, [...(this.#children.get(row.parent) ?? []), row.id]);
    }
    for (const parent of endedNow) {
      for (const id of this.#children.get(parent) ?? []) this.#checkChild(parent, id);
    }
  }

  #checkChild(parent: string, id: string): void {
    const child = this.#mirror.jobs.get(id);
    if (!child || unpackSpec(child.spec).rules?.outliveParent) return;
    const ends = child.ended_at_ms !== null || child.cancel_requested_at_ms !== null;
    must(ends, 'I15', () => `${id} goes on although ${parent}, which submitted it, has ended`);
  }
}
