/**
 * The secrets with which machines that a provider was asked for join. They are computed, not kept:
 * a controller that starts again knows them still, and no row holds one. Each is good for one
 * instance while that is wanted, or for one pool whose machines cannot be told apart beforehand.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { InstanceId } from '../../model/ids.ts';

export interface JoinSecrets {
  ofInstance(id: InstanceId): string;
  ofPool(pool: string): string;
  /** Null: it is no such secret, or not of this cluster. */
  read(secret: string): JoinTicket | null;
}

type JoinTicket = { kind: 'instance'; id: InstanceId } | { kind: 'pool'; pool: string };

const PREFIXES = { instance: 'dri', pool: 'drp' } as const;
const SHAPE = /^(dri|drp)_([A-Za-z0-9_-]+)\.([0-9a-f]{64})$/;

export function createJoinSecrets(key: string): JoinSecrets {
  const macOf = (kind: keyof typeof PREFIXES, name: string): string =>
    createHmac('sha256', key).update(`${kind}\n${name}`).digest('hex');
  const secretOf = (kind: keyof typeof PREFIXES, name: string): string =>
    `${PREFIXES[kind]}_${Buffer.from(name).toString('base64url')}.${macOf(kind, name)}`;
  return {
    ofInstance: (id) => secretOf('instance', id),
    ofPool: (pool) => secretOf('pool', pool),
    read(secret) {
      const match = SHAPE.exec(secret);
      if (!match) return null;
      const [, prefix, encoded = '', mac = ''] = match;
      const kind = prefix === PREFIXES.instance ? 'instance' : 'pool';
      const name = Buffer.from(encoded, 'base64url').toString();
      const wanted = Buffer.from(macOf(kind, name), 'hex');
      if (!timingSafeEqual(Buffer.from(mac, 'hex'), wanted)) return null;
      return kind === 'instance' ? { kind, id: name as InstanceId } : { kind, pool: name };
    },
  };
}
