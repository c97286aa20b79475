/** Who looks into a job is recorded before a byte passes: what cannot be recorded is refused. */
import type { Clock } from '../../lib/clock.ts';
import type { Principal } from '../../model/token.ts';
import type { AccessRecord, Coordinator } from '../../protocol/coordinator.ts';

export interface Access {
  /** exec, tcp, unix, ssh, ps or profile. */
  kind: string;
  task: string;
  attempt: string;
  principal: Principal;
  /** The port, the socket, the process: whatever the kind has. */
  details: Record<string, unknown>;
}

export type Audited = (access: Access) => Promise<void>;

/** Kinds of which one person opens many. */
export const CONNECTIONS: ReadonlySet<string> = new Set(['tcp', 'unix']);
/** Further connections to the same place within this time are one access. */
const SAME_ACCESS_MS = 600_000;

export class Accesses {
  readonly #clock: Clock;
  readonly #audited: Audited;
  /** Connections recorded, with the boot time until which that holds. */
  readonly #recent = new Map<string, number>();

  constructor(clock: Clock, audited: Audited) {
    this.#clock = clock;
    this.#audited = audited;
  }

  async record(access: Access): Promise<void> {
    const now = this.#clock.bootMs();
    for (const [key, until] of this.#recent) if (until < now) this.#recent.delete(key);
    const { kind, attempt, principal, details } = access;
    const key = JSON.stringify([principal.token, attempt, kind, details]);
    if (this.#recent.has(key)) return;
    await this.#audited(access);
    if (CONNECTIONS.has(kind)) this.#recent.set(key, now + SAME_ACCESS_MS);
  }
}

/** At the controller, for those who ask who did. */
export function recordAccesses(coordinator: Pick<Coordinator, 'recordAccess'>): Audited {
  return async ({ kind, attempt, principal, details }) => {
    // Not a secret, but of no use to a reader.
    const { publicKey: _, ...told } = details;
    const plain: AccessRecord['details'] = {};
    for (const [name, value] of Object.entries(told)) plain[name] = plainOf(value);
    await coordinator.recordAccess(principal, { how: kind, attempt, details: plain });
  };
}

function plainOf(value: unknown): string | number | boolean | null {
  const plain =
    typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  return plain ? value : (JSON.stringify(value) ?? null);
}
