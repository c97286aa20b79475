/** Every limit of the S3 blob store, with its unit and reason. */

const MIB = 1024 * 1024;
const DAY_S = 86_400;

export const S3_LIMITS = {
  /** A part of a large upload, held in memory so that it can be sent again. S3's least is 5 MiB. */
  partBytes: 8 * MIB,
  /** S3 takes no more parts of one object; the parts of a very large one grow instead. */
  parts: 10_000,
  /** Parts of one upload under way: enough to keep a fast line busy. */
  partsAtOnce: 3,
  /** Uploads of one process that hold parts in memory; further ones wait, unread. */
  uploadsAtOnce: 16,
  /** Connections to the bucket, over all calls. */
  connections: 64,
  connectMs: 5_000,
  /** Until the first byte of an answer; putting a large upload together takes S3 a while. */
  answerMs: 120_000,
  /** The longest silence inside an answer. */
  silenceMs: 60_000,
  /** A call is sent at most this often, with pauses of 100, 200, 400 ms in between. */
  tries: 4,
  firstPauseMs: 100,
  /** S3 accepts no longer life of a signed URL. */
  longestUrlSeconds: 7 * DAY_S,
  /** An upload begun longer ago than this will not be finished: a start removes its parts. */
  leftoverMs: DAY_S * 1000,
};
