/** Servers whose certificate is not one to trust: how that looks, and what to do about it. */

const UNTRUSTED = /^(UNABLE_TO_|SELF_SIGNED_CERT|DEPTH_ZERO_|CERT_|ERR_TLS_CERT_|INVALID_CA$)/;

export const UNTRUSTED_HINT =
  'where the certificate is of your own authority, name its file: --ca-file FILE, ' +
  'DROVER_CA_FILE, or once with `drover login URL --ca-file FILE`';

export function isUntrusted(code: string | undefined): boolean {
  return code !== undefined && UNTRUSTED.test(code);
}
