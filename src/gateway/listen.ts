/** Opening the port: only where it is safe, and with an error that says what to try. */
import { DroverError } from '../lib/errors.ts';
import type { App } from './app.ts';
import { isLoopbackAddress } from './auth/authorize.ts';

export interface ListenOptions {
  host: string;
  /** 0: any free one. */
  port: number;
  /** There is no TLS here yet: tokens cross the network readable, so it must be asked for. */
  insecure?: boolean;
}

/** Returns the URL it is reached under. */
export async function listen(app: App, options: ListenOptions): Promise<string> {
  // One address, not two sockets: what a name resolves to is not the same everywhere.
  const host = options.host === 'localhost' ? '127.0.0.1' : options.host;
  if (!isLoopbackAddress(host) && options.insecure !== true) {
    throw new DroverError('INVALID_ARGUMENT', `${host} can be reached from other machines`, {
      hint: 'Listen on 127.0.0.1 behind a proxy with TLS, or set insecure to accept plain HTTP.',
    });
  }
  try {
    await app.listen({ host, port: options.port });
  } catch (error) {
    throw listenError(error, host, options.port);
  }
  const address = app.server.address();
  const port = typeof address === 'object' && address ? address.port : options.port;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function listenError(error: unknown, host: string, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const cause = error;
  const at = `port ${port} on ${host}`;
  switch (code) {
    case 'EADDRINUSE':
      return new DroverError('CONFLICT', `Another process listens on ${at}`, {
        hint: 'Stop it, or choose another port; 0 takes any free one.',
        cause,
      });
    case 'EACCES':
      return new DroverError('PERMISSION_DENIED', `This user may not listen on ${at}`, {
        hint: 'Choose a port above 1023.',
        cause,
      });
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new DroverError('INVALID_ARGUMENT', `${host} is no address of this machine`, {
        hint: 'Use 127.0.0.1, or 0.0.0.0 for every address.',
        cause,
      });
    default:
      return error;
  }
}
