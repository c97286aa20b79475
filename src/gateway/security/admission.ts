/** Who may connect at all, by address; behind proxies that are trusted, by what they tell. */
import type { IncomingMessage } from 'node:http';
import { addressList } from '../../lib/addressList.ts';
import { DroverError } from '../../lib/errors.ts';
import { isLoopback } from '../../lib/loopback.ts';

export interface Admission {
  /** Empty lists: everybody is let in, and there is nothing to check. */
  readonly isOpen: boolean;
  /** Whether to listen to this peer at all. */
  admits(peer: string): boolean;
  /** Who calls: the peer, or whom a trusted proxy calls for. */
  callerOf(request: IncomingMessage): string;
  /** Throws where the caller behind a trusted proxy is not allowed. */
  check(request: IncomingMessage): void;
}

export function createAdmission(options: {
  allow?: readonly string[];
  trustedProxies?: readonly string[];
}): Admission {
  const allowed = addressList(options.allow ?? []);
  const proxies = addressList(options.trustedProxies ?? []);
  const isAllowed = (address: string): boolean =>
    allowed.isEmpty || isLoopback(address) || allowed.has(address);
  const callerOf = (request: IncomingMessage): string => {
    const peer = request.socket.remoteAddress ?? '';
    const told = request.headers['x-forwarded-for'];
    if (told === undefined || !proxies.has(peer)) return peer;
    // Each proxy appends whom it heard; what stands left of the first stranger is his own claim.
    const chain = String(told).split(',').map(addressIn).toReversed();
    return chain.find((address) => !proxies.has(address)) ?? chain.at(-1) ?? peer;
  };
  return {
    isOpen: allowed.isEmpty,
    admits: (peer) => isAllowed(peer) || proxies.has(peer),
    callerOf,
    check(request) {
      const caller = callerOf(request);
      if (isAllowed(caller)) return;
      throw new DroverError('PERMISSION_DENIED', `Calls from ${caller} are not taken here`, {
        hint: 'Call from a network that server.allow names, or have yours added to it.',
      });
    },
  };
}

/** `192.0.2.1`, `192.0.2.1:4711`, `[2001:db8::1]:4711`: the address of it. */
function addressIn(text: string): string {
  const plain = text.trim();
  const bracketed = /^\[([^\]]*)\]/.exec(plain)?.[1];
  if (bracketed !== undefined) return bracketed;
  return /^[\d.]+:\d+$/.test(plain) ? plain.slice(0, plain.indexOf(':')) : plain;
}
