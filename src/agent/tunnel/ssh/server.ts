/**
 * The ssh stream: an SSH server inside a running attempt, spoken to by a real OpenSSH client at the
 * other end of the tunnel. The gateway has let the caller in; the server in turn lets in the one
 * key that came with the stream, under a host key of the attempt that the client learned over the
 * same way. Commands run as `drover exec` runs them, but as with any sshd what was left in the
 * background stays, until the attempt ends.
 */
import type { Socket } from 'node:net';
import ssh2, { type AuthContext, type Connection, type ServerChannel } from 'ssh2';
import type { Clock } from '../../../lib/clock.ts';
import { DroverError } from '../../../lib/errors.ts';
import type { Log } from '../../../lib/log.ts';
import { joinDuplexes, streamDuplex } from '../../../protocol/tunnel/duplex.ts';
import { parseInside } from '../../../protocol/tunnel/inside.ts';
import type { StreamHandler } from '../dialer.ts';
import { connectTo } from '../forward.ts';
import { requireRunning, type ExecContext, type FindRunning } from '../running.ts';
import { serveSession } from './session.ts';

/** Open channels of one connection: an editor has a dozen. */
const MAX_CHANNELS = 200;
/** Host keys kept, one for each attempt that was entered: the oldest is made anew. */
const MAX_HOST_KEYS = 1_000;

interface HostKey {
  private: string;
  public: string;
}

interface ServerOptions {
  execContext: FindRunning;
  clock: Clock;
  log: Log;
}

export function createSshHandler(options: ServerOptions): StreamHandler {
  const hostKeys = new Map<string, HostKey>();
  return async (stream) => {
    const { attemptUid } = stream.header;
    const context = requireRunning(options.execContext, attemptUid);
    const request = parseInside(stream.header);
    if (request.kind !== 'ssh') throw new DroverError('INVALID_ARGUMENT', 'not an ssh stream');
    const hostKey = hostKeyOf(hostKeys, attemptUid);
    await stream.write(Buffer.from(`${JSON.stringify({ hostKey: hostKey.public })}\n`));
    const server = new ssh2.Server({ hostKeys: [hostKey.private], ident: 'drover' });
    server.on('connection', (client) => serveClient(client, request.publicKey, context, options));
    const duplex = streamDuplex(stream);
    // What broke the stream is known to both ends of it.
    duplex.on('error', () => {});
    options.log.info({ attemptUid }, 'ssh opened');
    // It reads, writes and ends it, which any duplex stream can.
    server.injectSocket(duplex as Socket);
    await stream.closed;
    options.log.info({ attemptUid }, 'ssh ended');
  };
}

function hostKeyOf(keys: Map<string, HostKey>, attemptUid: string): HostKey {
  const known = keys.get(attemptUid);
  if (known !== undefined) return known;
  const made = ssh2.utils.generateKeyPairSync('ed25519');
  keys.set(attemptUid, made);
  const [oldest] = keys.keys();
  if (keys.size > MAX_HOST_KEYS && oldest !== undefined) keys.delete(oldest);
  return made;
}

function serveClient(
  client: Connection,
  publicKey: string,
  context: ExecContext,
  { clock, log }: ServerOptions,
): void {
  const isAllowed = keyCheck(publicKey);
  let channels = 0;
  const admit = <Channel extends { on(event: 'close', listener: () => void): unknown }>(
    accept: () => Channel,
    reject: () => void,
  ): Channel | undefined => {
    if (channels >= MAX_CHANNELS) {
      reject();
      return undefined;
    }
    channels++;
    const channel = accept();
    channel.on('close', () => channels--);
    return channel;
  };
  client.on('authentication', (attempt) => {
    if (isAllowed(attempt)) attempt.accept();
    else attempt.reject(['publickey']);
  });
  client.on('session', (accept, reject) => {
    const session = admit(accept, () => reject());
    if (session) serveSession(session, { context, clock, log });
  });
  client.on('tcpip', (accept, reject, { destIP: host, destPort: port }) => {
    void join(
      () => admit(accept, () => reject()),
      () => reject(),
      { host, port },
      log,
    );
  });
  client.on('openssh.streamlocal', (accept, reject, { socketPath: path }) => {
    void join(
      () => admit(accept, () => reject()),
      () => reject(),
      { path },
      log,
    );
  });
  client.on('error', (error) => log.debug({ error: error.message }, 'an ssh connection broke'));
}

/** True for the one key, and once it has signed. */
function keyCheck(publicKey: string): (attempt: AuthContext) => boolean {
  const allowed = ssh2.utils.parseKey(publicKey);
  if (allowed instanceof Error) {
    throw new DroverError('INVALID_ARGUMENT', `the public key is damaged: ${allowed.message}`);
  }
  const key = Array.isArray(allowed) ? allowed[0]! : allowed;
  return (attempt) => {
    if (attempt.method !== 'publickey') return false;
    const { algo, data } = attempt.key;
    if (algo !== key.type || !data.equals(key.getPublicSSH())) return false;
    // Without a signature the client only asks whether the key would do.
    if (attempt.signature === undefined) return true;
    return key.verify(attempt.blob!, attempt.signature, attempt.hashAlgo) === true;
  };
}

/** `ssh -L`, `-D` and what an editor does by itself. */
async function join(
  open: () => ServerChannel | undefined,
  refuse: () => void,
  place: { host: string; port: number } | { path: string },
  log: Log,
): Promise<void> {
  try {
    const socket = await connectTo(place);
    const channel = open();
    if (channel === undefined) socket.destroy();
    else await joinDuplexes(channel, socket);
  } catch (error) {
    log.debug({ error: String(error) }, 'a forwarded connection failed');
    refuse();
  }
}
