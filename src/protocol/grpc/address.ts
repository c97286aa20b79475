/** Which addresses stay on this machine: there clear text is nobody else's to read. */
import { isIPv4 } from 'node:net';

export function isLoopback(host: string): boolean {
  const plain = host.replace(/^\[(.*)\]$/, '$1');
  return plain === 'localhost' || plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}
