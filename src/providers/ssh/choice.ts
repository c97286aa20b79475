/** Which hosts an instance can be launched on, and why none was. */
import type { Refusal } from '../contract.ts';
import { hasRoom } from './drift.ts';
import type { Host, Trouble } from './host.ts';

export interface Tried {
  host: string;
  /** used: it has an instance. trouble: something is wrong there. */
  why: 'used' | 'trouble';
  reason: string;
  person: boolean;
}

/** The reasons of one refusal. */
const TOLD = 5;

export function chooseHosts(
  hosts: readonly Host[],
  avoid: readonly string[],
  freeBytes: number,
): { free: Host[]; taken: Tried[] } {
  const free: Host[] = [];
  const taken: Tried[] = [];
  for (const host of hosts) {
    const reason = inUse(host);
    const trouble = avoid.includes(host.name)
      ? { reason: 'is to be avoided', person: false }
      : troubleOf(host, freeBytes);
    if (reason) taken.push({ host: host.name, why: 'used', reason, person: false });
    else if (trouble) taken.push({ host: host.name, why: 'trouble', ...trouble });
    else free.push(host);
  }
  return { free, taken };
}

function inUse({ seen, silence, launching, instance }: Host): string {
  // What was last seen there does not count while nobody knows.
  if (silence) return '';
  if (launching) return 'is being launched on';
  if (instance) return `has ${instance.label}`;
  const [other] = seen?.report.others ?? [];
  return other === undefined ? '' : `is in use by ${other}`;
}

function troubleOf(host: Host, freeBytes: number): Trouble | undefined {
  const trouble = host.silence ?? (host.rests ? host.trouble : undefined);
  if (trouble) return trouble;
  if (!host.seen) return { reason: 'was not reached yet', person: false };
  if (hasRoom(host.seen.report, freeBytes)) return undefined;
  const free = Math.floor((host.seen.report.freeBytes ?? 0) / 2 ** 20);
  return { reason: `has only ${free} MiB free`, person: false };
}

/** While some work, more would be a matter of capacity; if none does, of what is wrong. */
export function refusalOf(tried: readonly Tried[]): { reason: string; refusal: Refusal } {
  const troubles = tried.filter(({ why }) => why === 'trouble');
  const used = tried.length - troubles.length;
  const told = troubles.slice(0, TOLD).map(({ host, reason }) => `${host}: ${reason}`);
  if (troubles.length > TOLD) told.push(`and ${troubles.length - TOLD} more`);
  const words = [...(used > 0 ? [`${used} in use`] : []), ...told];
  const reason = `no host is free: ${words.join('; ')}`;
  if (used > 0) return { reason, refusal: 'capacity' };
  const refusal = troubles.every(({ person }) => person) ? 'configuration' : 'unreachable';
  return { reason, refusal };
}
