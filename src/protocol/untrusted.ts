/** One end does not trust the other's certificate: how that looks, and what to do about it. */

const OURS = /^(UNABLE_TO_|SELF_SIGNED_CERT|DEPTH_ZERO_|CERT_|ERR_TLS_CERT_|INVALID_CA$)/;
/** What a server says that asks for certificates and does not take the one it was shown. */
const THEIRS = /^ERR_SSL_.*(CERTIFICATE|UNKNOWN_CA)/;

export const UNTRUSTED_HINT =
  'where the certificate is of your own authority, name its file: --ca-file FILE, ' +
  'DROVER_CA_FILE, or once with `drover login URL --ca-file FILE`; a server that asks for ' +
  'yours is shown what DROVER_CERT_FILE and DROVER_KEY_FILE name';

export function isUntrusted(code: string | undefined): boolean {
  return code !== undefined && (OURS.test(code) || THEIRS.test(code));
}
