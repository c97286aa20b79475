/** How every TLS listener of ours speaks: TLS 1.2 and newer, forward secret and authenticated. */
import { constants } from 'node:crypto';
import type { TlsOptions } from 'node:tls';
import type { Pems } from './pems.ts';

/** Of TLS 1.2; those of 1.3 are all good. */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
];

/** A client that has not finished its handshake by then holds a socket for nothing. */
const HANDSHAKE_MS = 10_000;

/** With `ca`, clients must show a certificate that it signed. */
export function tlsServerOptions(pems: Pems): TlsOptions {
  const { cert, key, ca } = pems;
  return {
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(ca === undefined ? {} : { ca }),
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS.join(':'),
    honorCipherOrder: true,
    // Nobody needs it, and it lets a client make the server work for free.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    handshakeTimeout: HANDSHAKE_MS,
    requestCert: ca !== undefined,
    rejectUnauthorized: ca !== undefined,
  };
}
