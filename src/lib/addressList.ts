/** A list of addresses and networks, `10.0.0.0/8` or `fd00::1`; knows IPv4 within IPv6, too. */
import { BlockList, isIP } from 'node:net';

const BITS = { 4: 32, 6: 128 } as const;

export interface AddressList {
  readonly isEmpty: boolean;
  has(address: string): boolean;
}

/** Entries must have passed `addressProblem`. */
export function addressList(entries: readonly string[]): AddressList {
  const list = new BlockList();
  for (const entry of entries) {
    const { address, bits, family } = parse(entry);
    list.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6');
  }
  return {
    isEmpty: entries.length === 0,
    has(address) {
      // A link-local address names its interface.
      const [plain = ''] = address.split('%', 1);
      const family = isIP(plain);
      return family !== 0 && list.check(plain, family === 4 ? 'ipv4' : 'ipv6');
    },
  };
}

/** What is wrong with an entry; undefined: nothing. */
export function addressProblem(entry: string): string | undefined {
  const { address, bits, family } = parse(entry);
  if (family === 0) return `${JSON.stringify(address)} is no IP address`;
  const most = BITS[family];
  if (Number.isInteger(bits) && bits >= 0 && bits <= most) return undefined;
  return `${JSON.stringify(entry)}: the number after / is from 0 to ${most}`;
}

function parse(entry: string): { address: string; bits: number; family: 0 | 4 | 6 } {
  const slash = entry.indexOf('/');
  const address = slash < 0 ? entry : entry.slice(0, slash);
  const family = isIP(address) as 0 | 4 | 6;
  if (slash < 0) return { address, bits: family === 0 ? 0 : BITS[family], family };
  const text = entry.slice(slash + 1);
  return { address, bits: /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN, family };
}
