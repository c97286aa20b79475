/**
 * Whom this process trusts beside the public authorities when it calls by HTTPS, and what it shows
 * where it is asked. As NODE_EXTRA_CA_CERTS does it holds for every call of the process (of one
 * thread of it, to be exact): fetch, undici and WebSockets have no other common place for it.
 */
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { loadPems } from '../lib/tls/files.ts';
import { certificatesIn, type PemFiles, type PemKind, type Pems } from '../lib/tls/pems.ts';

export interface ClientTlsFiles {
  caFile?: string | undefined;
  certFile?: string | undefined;
  keyFile?: string | undefined;
}

let known: string[] | undefined;
let shown: { cert?: string; key?: string } = {};

export function useClientTls({ ca, cert, key }: Pems): void {
  if (ca !== undefined) {
    // What was there before the first call: an authority that is taken out is trusted no more.
    known ??= getCACertificates('default');
    setDefaultCACertificates([...known, ...certificatesIn(ca).map(String)]);
  }
  if (cert !== undefined && key !== undefined) shown = { cert, key };
}

/** Reads the files once. `names` says for each how the user named it. */
export function useClientTlsFiles(files: ClientTlsFiles, names: ClientTlsFiles = {}): void {
  const pemFiles = clientPemFiles(files, names);
  if (Object.keys(pemFiles).length > 0) useClientTls(loadPems(pemFiles));
}

export function clientPemFiles(files: ClientTlsFiles, names: ClientTlsFiles): PemFiles {
  const found: PemFiles = {};
  for (const kind of ['ca', 'cert', 'key'] satisfies PemKind[]) {
    const path = files[`${kind}File`];
    if (path) found[kind] = { setting: names[`${kind}File`] ?? `${kind}File`, path };
  }
  return found;
}

/** For clients that have a place of their own for it. */
export function shownCertificate(): { cert?: string; key?: string } {
  return shown;
}

/** Before a call by fetch or undici: loads what shows the certificate, where there is one. */
export async function prepareClientTls(): Promise<void> {
  if (shown.cert !== undefined) await import('./clientDispatcher.ts');
}
