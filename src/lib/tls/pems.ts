/** Certificate, key and authority as texts: read from files, and checked before they are used. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { DroverError } from '../errors.ts';

/** In PEM. `cert` may hold a chain, `ca` several authorities. */
export interface Pems {
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly ca?: string | undefined;
}

export type PemKind = keyof Pems;

/** A file, and the setting that names it. */
export interface PemFile {
  setting: string;
  path: string;
}

export type PemFiles = Partial<Record<PemKind, PemFile>>;

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

export function certificatesIn(pem: string): X509Certificate[] {
  return (pem.match(CERTIFICATE) ?? []).map((one) => new X509Certificate(one));
}

/** Of the certificate that is shown; undefined where there is none. */
export function expiresAtMs({ cert }: Pems): number | undefined {
  const [leaf] = cert === undefined ? [] : certificatesIn(cert);
  return leaf === undefined ? undefined : leaf.validToDate.getTime();
}

/** Throws what is wrong with them, in words that name the file. */
export function checkPems(pems: Pems, files: PemFiles): void {
  for (const kind of ['cert', 'ca'] as const) {
    const pem = pems[kind];
    if (pem === undefined) continue;
    const found = attempt(files[kind], 'holds a damaged certificate', () => certificatesIn(pem));
    if (found.length === 0) throw unusable(files[kind], 'holds no certificate in PEM');
  }
  const { cert, key } = pems;
  if (key !== undefined) {
    const parsed = attempt(files.key, 'holds no private key in PEM without a passphrase', () =>
      createPrivateKey(key),
    );
    const [leaf] = certificatesIn(cert ?? '');
    if (leaf !== undefined && !leaf.checkPrivateKey(parsed)) {
      throw unusable(files.key, `is not the key of the certificate in ${files.cert?.path}`);
    }
  }
  attempt(files.cert, 'cannot be used', () =>
    createSecureContext({
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(pems.ca === undefined ? {} : { ca: pems.ca }),
    }),
  );
}

function attempt<Result>(file: PemFile | undefined, problem: string, run: () => Result): Result {
  try {
    return run();
  } catch (cause) {
    throw unusable(file, `${problem} (${(cause as Error).message})`, cause);
  }
}

export function unusable(file: PemFile | undefined, problem: string, cause?: unknown): DroverError {
  const named =
    file === undefined ? 'the certificate' : `${file.setting} names ${file.path}, which`;
  return new DroverError('INVALID_ARGUMENT', `${named} ${problem}`, {
    hint: 'docs/tls.md tells which files are needed and how to make them.',
    cause,
  });
}
