/** The heads of the chains of what people did: the next entry of a tenant stands on its last. */
import { CHAIN_BEGIN, chainHash, type AuditHead } from '../model/auditChain.ts';
import type { Event } from '../model/event.ts';
import { mark, type Operation } from './changes.ts';

export class AuditChains {
  readonly #heads = new Map<string, AuditHead>();

  constructor(heads: readonly AuditHead[]) {
    for (const head of heads) this.#heads.set(head.tenant, head);
  }

  head(tenant: string): AuditHead | undefined {
    return this.#heads.get(tenant);
  }

  append(event: Event, changes: Map<AuditHead, Operation>): void {
    const { tenant } = event;
    let head = this.#heads.get(tenant);
    if (head) mark(changes, head);
    else {
      head = { tenant, hash: CHAIN_BEGIN, entries: 0 };
      this.#heads.set(tenant, head);
      changes.set(head, 'insert');
    }
    event.hash = chainHash(head.hash, event);
    head.hash = event.hash;
    head.entries++;
  }
}
