/**
 * The tunnel's limits, each with its reason. Both ends count by the same figures, version by
 * version.
 */

/**
 * The WebSocket subprotocol that agents offer and gateways accept: the version of everything here.
 */
export const TUNNEL_PROTOCOL = 'drover.tunnel.v1';
/** Where a gateway takes dials of agents, below its public URL. */
export const TUNNEL_PATH = '/v1/tunnel';
/**
 * Sent by a dialling agent: random per agent process, so that a restarted one replaces its old
 * tunnel.
 */
export const AGENT_SESSION_HEADER = 'drover-agent-session';

export interface TunnelLimits {
  /** One frame, header included: short, so that no stream keeps others waiting for long. */
  frameBytes: number;
  /** The JSON of an OPEN or RESET: it names things, it does not carry them. */
  headerBytes: number;
  /**
   * Open streams per tunnel and opener: with `windowBytes` it bounds what a peer can make us hold.
   */
  streams: number;
  /**
   * What may be sent on a stream before its reader consumed any: bandwidth times delay, per stream.
   */
  windowBytes: number;
  /** Data handed to the socket and not yet written: more would only queue where fairness ends. */
  socketBytes: number;
  /**
   * As above with WINDOW, RESET and OPEN, which do not wait: beyond it the peer has stopped
   * reading.
   */
  controlBytes: number;
  /** A ping each; a peer silent for `silentPings` of them is dead. */
  pingIntervalMs: number;
  silentPings: number;
  /** A tunnel without streams is closed after this; the next stream costs one dial. */
  idleMs: number;
}

export const TUNNEL_LIMITS: TunnelLimits = {
  frameBytes: 16 * 1024,
  headerBytes: 4 * 1024,
  streams: 128,
  windowBytes: 512 * 1024,
  socketBytes: 256 * 1024,
  controlBytes: 1024 * 1024,
  pingIntervalMs: 10_000,
  silentPings: 3,
  idleMs: 300_000,
};
