/**
 * Holds many server-sent streams open in a process of its own: openStreams.ts PORT PATH COUNT, the
 * token on stdin. Says "open" when each has its headers, then counts what breaks.
 */
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

const [port = '', path = '', count = ''] = process.argv.slice(2);
/** Opened at once; more only wait in the server's backlog. */
const AT_ONCE = 200;
const [token] = await firstLine();
let broken = 0;
const sockets: Socket[] = [];

const open = (): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(port) });
    let head = '';
    socket.on('data', (bytes) => {
      if (head.includes('\r\n\r\n')) return;
      head += bytes.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      if (head.startsWith('HTTP/1.1 200')) resolve();
      else reject(new Error(head.slice(0, 300)));
    });
    socket.on('error', reject);
    socket.on('close', () => broken++);
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`,
    );
    sockets.push(socket);
  });

let left = Number(count);
const lane = async (): Promise<void> => {
  while (left-- > 0) await open();
};
await Promise.all(Array.from({ length: AT_ONCE }, lane));
console.log('open');
process.on('SIGTERM', () => process.exit(0));
setInterval(() => console.log(`broken ${broken}`), 1000);

async function firstLine(): Promise<[string]> {
  for await (const line of createInterface({ input: process.stdin })) return [line];
  throw new Error('no token came');
}
