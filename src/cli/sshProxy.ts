/** The bytes of an SSH client: from its pipes to the server in the task and back. */
import type { Readable } from 'node:stream';
import { DroverError } from '../lib/errors.ts';
import { sshGreeting } from '../protocol/tunnel/inside.ts';
import type { TunnelStream } from '../protocol/tunnel/stream.ts';
import type { InsideTask } from './insideTask.ts';
import { rememberHost, type SshFiles } from './sshFiles.ts';

/** The greeting is a line with a key in it. */
const GREETING_BYTES = 8 * 1024;
const NEWLINE = 10;

export async function pumpSsh(options: {
  inside: InsideTask;
  files: SshFiles;
  host: string;
  stdin: Readable;
}): Promise<void> {
  const { inside, files, host, stdin } = options;
  const stream = await inside.open({ kind: 'ssh', publicKey: files.publicKey });
  const reader = stream[Symbol.asyncIterator]();
  const { hostKey, rest } = await readGreeting(reader);
  // Before the client reads a byte: it looks the key up when the server has greeted.
  rememberHost(files, host, hostKey);
  await Promise.all([sendInput(stdin, stream), writeOutput(rest, reader, stdin)]);
}

async function readGreeting(
  reader: AsyncGenerator<Uint8Array, void>,
): Promise<{ hostKey: string; rest: Buffer }> {
  let held = Buffer.alloc(0);
  for (;;) {
    const next = await reader.next();
    if (next.done) throw new DroverError('UNAVAILABLE', 'the machine ended the session');
    held = Buffer.concat([held, next.value]);
    const end = held.indexOf(NEWLINE);
    if (end >= 0) {
      const { hostKey } = sshGreeting.parse(JSON.parse(held.toString('utf8', 0, end)));
      return { hostKey, rest: held.subarray(end + 1) };
    }
    if (held.length > GREETING_BYTES) throw new DroverError('MALFORMED_BODY', 'no ssh greeting');
  }
}

/** Resolves when the client has ended; its leaving resets nothing that is still on its way. */
async function sendInput(stdin: Readable, stream: TunnelStream): Promise<void> {
  try {
    for await (const bytes of stdin) await stream.write(bytes as Buffer);
    stream.end();
  } catch (error) {
    // The other direction says why the stream ended; our own end of reading is no failure.
    if (!stdin.destroyed) throw error;
  }
}

async function writeOutput(
  rest: Buffer,
  reader: AsyncGenerator<Uint8Array, void>,
  stdin: Readable,
): Promise<void> {
  try {
    await write(rest);
    for await (const bytes of reader) await write(bytes);
  } finally {
    stdin.destroy();
  }
}

function write(bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}
