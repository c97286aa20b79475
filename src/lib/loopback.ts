/** Which addresses stay on this machine: there clear text is nobody else's to read. */
import { isIPv4 } from 'node:net';

const MAPPED = '::ffff:';

export function isLoopback(host: string): boolean {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
  const plain = bare.startsWith(MAPPED) ? bare.slice(MAPPED.length) : bare;
  return plain === 'localhost' || plain === '::1' || (plain.startsWith('127.') && isIPv4(plain));
}
