/**
 * Started as a process: plain node:http that answers every request with `ok`, for the loader's
 * ceiling.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    response.setHeader('content-length', 2);
    response.end('ok');
  });
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`);
});
