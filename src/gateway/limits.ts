/** Every limit of the gateway, with its unit and reason. Each may be set; each has a test. */

const MIB = 1024 * 1024;

export const GATEWAY_LIMITS = {
  /** Any body that has no limit of its own: a job with its largest command and environment fits. */
  bodyBytes: 4 * MIB,
  /** POST /v1/jobs/batch: 1,000 jobs of 32 KiB. */
  batchBodyBytes: 32 * MIB,
  /** Agent sync: some 80,000 observations. Read before the controller has checked the token. */
  syncBodyBytes: 16 * MIB,
  /** Agent AppendLogs: several of an agent's own batches. */
  logBodyBytes: 16 * MIB,
  /** A connector's results: the largest, and as much again. */
  connectorBodyBytes: 16 * MIB,
  /** Request line and headers together; Node answers 431 beyond. */
  headerBytes: 16 * 1024,
  /** One part of a path, encoded: the longest name, a user's, in letters of three bytes each. */
  pathParameterLength: 200 * 9,
  /**
   * A client must have sent its whole request by then (slow or stuck senders hold a socket); blobs
   * may take longer, see transferSilenceMs.
   */
  requestReceiveMs: 60_000,
  /** A blob that comes or goes may stand still for this long: the other side may be slow. */
  transferSilenceMs: 300_000,
  /** Downloads of the agent under /install at once: nobody shows a token for them. */
  installDownloads: 64,
  /** How long a signed URL of a blob is good for: to begin a download, not to finish it. */
  signedUrlMs: 15 * 60_000,
  /** A unary call that takes longer is answered 504. Streams have no such end. */
  unaryTimeoutMs: 30_000,
  /** The same for calls that are meant to wait: longer than any wait they may ask for. */
  longPollTimeoutMs: 75_000,
  /** GET /v1/jobs/{id}/wait: the longest wait one call may ask for. */
  waitMs: 60_000,
  /** A clean close waits this long for calls under way, then cuts them off. */
  closeMs: 10_000,
  /** How long an answer of `authenticate` is believed. DESIGN.md fixes 5 s as the most. */
  tokenCacheMs: 5_000,
  /** An unknown token is asked about again sooner: it may just have been created. */
  unknownTokenCacheMs: 1_000,
  /** Tokens remembered, known and unknown apart, so that guesses never push out real ones. */
  tokenCacheEntries: 10_000,
  /** A unary call slower than this is logged. */
  slowMs: 1_000,
};

export type GatewayLimits = typeof GATEWAY_LIMITS;
