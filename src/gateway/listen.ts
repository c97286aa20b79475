/** Opening the port: only where it is safe, and with an error that says what to try. */
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { DroverError } from '../lib/errors.ts';
import { isLoopback } from '../lib/loopback.ts';
import type { Pems } from '../lib/tls/pems.ts';
import { certificatesIn } from '../lib/tls/pems.ts';
import type { App } from './app.ts';

export interface ListenOptions {
  host: string;
  /** 0: any free one. */
  port: number;
  /** Without TLS tokens cross the network readable: beyond this machine it must be asked for. */
  insecure?: boolean;
  tls?: Pems;
  publicUrl?: string;
}

/** Returns the URL it is reached under. */
export async function listen(app: App, options: ListenOptions): Promise<string> {
  // One address, not two sockets: what a name resolves to is not the same everywhere.
  const host = options.host === 'localhost' ? '127.0.0.1' : options.host;
  if (!isLoopback(host) && !options.tls && options.insecure !== true) throw withoutTls(host);
  try {
    await app.listen({ host, port: options.port });
  } catch (error) {
    throw listenError(error, host, options.port);
  }
  const address = app.server.address();
  const port = typeof address === 'object' && address ? address.port : options.port;
  if (!options.tls) return `http://${inUrl(host)}:${port}`;
  const name = certifiedName(host, options.tls.cert ?? '');
  if (name === undefined && options.publicUrl) return options.publicUrl;
  return `https://${inUrl(name ?? host)}:${port}`;
}

function withoutTls(host: string): DroverError {
  const detail =
    `${host} can be reached from other machines, and there is no TLS: ` +
    'tokens would cross the network readable';
  return new DroverError('INVALID_ARGUMENT', detail, {
    hint:
      'Give server.certFile and server.keyFile (docs/tls.md), listen on 127.0.0.1 behind a proxy ' +
      'with TLS, or accept it with server.insecure: true.',
  });
}

/** A name for this machine that the certificate is good for; undefined: only strangers know one. */
function certifiedName(host: string, cert: string): string | undefined {
  const [leaf] = certificatesIn(cert);
  if (leaf === undefined) return undefined;
  const anywhere = host === '0.0.0.0' || host === '::';
  const own = anywhere || isLoopback(host) ? ['127.0.0.1', 'localhost', hostname()] : [hostname()];
  const names = anywhere ? own : [host, ...own];
  const certified = names.find((name) =>
    isIP(name) === 0 ? leaf.checkHost(name) : leaf.checkIP(name),
  );
  if (certified !== undefined || isLoopback(host)) return certified;
  // The certificate was made for this machine: how it calls it is how others find it.
  return /DNS:([^*,\s]+)/.exec(leaf.subjectAltName ?? '')?.[1];
}

function inUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
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
