/** Limits of checking who comes in, with their reasons. docs/limits.md lists them. */

export const AUTH_LIMITS = {
  /** A JWT with two hundred groups fits; what is longer is not even decoded. */
  jwtBytes: 8 * 1024,
  /** An issuer that does not answer by then is away. */
  fetchMs: 5_000,
  /** A discovery document or a key set. */
  fetchBytes: 256 * 1024,
  /** Keys of one issuer. */
  keys: 100,
  /** A key that an issuer took back is believed for so long at most, while the issuer answers. */
  keysFreshMs: 10 * 60_000,
  /** While it does not answer, its keys are used on for so long; then nobody of it comes in. */
  keysStaleMs: 60 * 60_000,
  /** An issuer is asked no more often, however many tokens with unknown keys come. */
  keysRefetchMs: 5_000,
  /** So often it is looked whether a file changed. */
  fileCheckMs: 1_000,
  /** A key of the key file is remembered so long: with the look above, less than 5 s together. */
  fileKeyMs: 3_000,
};

export type AuthLimits = typeof AUTH_LIMITS;
