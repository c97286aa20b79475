/**
 * Which addresses a message may go to. A name is resolved once, every address it has is checked,
 * and the connection goes to a checked one: a name that answers differently the next time is of no
 * use to whoever owns it.
 */
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { DroverError } from '../lib/errors.ts';

export interface Address {
  address: string;
  family: 4 | 6;
}
export type Resolve = (host: string) => Promise<{ address: string; family: number }[]>;

const systemResolve: Resolve = (host) => lookup(host, { all: true, order: 'verbatim' });

/** Loopback, private, link-local (where clouds keep their metadata), test, multicast, reserved. */
const PRIVATE_V4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12
  192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24
  203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`;
/** The same, and all that carries an IPv4 address inside, where one of those could hide. */
const PRIVATE_V6 = `::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23
  2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8`;

/** A list for each: with one for both, every IPv4 address would be one inside ::ffff:0:0/96. */
const refused = { ipv4: blocked(PRIVATE_V4, 'ipv4'), ipv6: blocked(PRIVATE_V6, 'ipv6') };

function blocked(subnets: string, family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const subnet of subnets.split(/\s+/)) {
    const [net = '', bits = ''] = subnet.split('/');
    list.addSubnet(net, Number(bits), family);
  }
  return list;
}

/** Where to connect for this host. Throws where it, or one of its addresses, is not allowed. */
export async function checkedAddress(
  host: string,
  allowPrivate: boolean,
  resolve: Resolve = systemResolve,
): Promise<Address> {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const literal = isIP(bare);
  const found = literal ? [{ address: bare, family: literal }] : await resolve(bare);
  const [first] = found;
  if (!first) throw new DroverError('UNAVAILABLE', `the host ${bare} has no address`);
  if (!allowPrivate && found.some(({ address }) => isPrivate(address))) {
    throw new DroverError(
      'PERMISSION_DENIED',
      `the host ${bare} is on a private network or this machine`,
      { hint: 'an operator can allow it with allowPrivate: true for this channel' },
    );
  }
  return { address: first.address, family: first.family === 6 ? 6 : 4 };
}

export function isPrivate(address: string): boolean {
  const family = isIP(address);
  // What is no address at all is nothing to connect to.
  if (family === 0) return true;
  const kind = family === 6 ? 'ipv6' : 'ipv4';
  return refused[kind].check(address, kind);
}
