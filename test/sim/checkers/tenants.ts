/** I9: what a tenant reads names no job of another and holds nothing another one wrote. */
import { canaryOf, TENANTS } from '../people.ts';
import type { Mirror } from './mirror.ts';
import { must, Violation } from './violation.ts';

export class TenantChecker {
  readonly #mirror: Mirror;

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  read(tenant: string, what: string, reply: unknown): void {
    const text = JSON.stringify(reply) ?? '';
    for (const other of TENANTS) {
      const found = other !== tenant && text.includes(canaryOf(other));
      must(!found, 'I9', () => `${what} showed ${tenant} what ${other} wrote`);
    }
    for (const [id] of text.matchAll(/\bj[0-9a-z]{10,}/g)) {
      const owner = this.#mirror.jobs.get(id)?.tenant ?? tenant;
      must(owner === tenant, 'I9', () => `${what} showed ${tenant} the job ${id} of ${owner}`);
    }
  }

  /** A call about another tenant's job did something else than not to find it. */
  foreign(tenant: string, what: string, answer: string): void {
    throw new Violation('I9', `${what} by ${tenant}, of another tenant, gave ${answer}`);
  }
}
