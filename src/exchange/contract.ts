/**
 * Tokens of other services, got from the token server of the caller's issuer. Neither tokens nor
 * what the server said with them is ever written down: a reason is for people and holds none.
 */
import type { AudienceSettings } from '../model/exchangeSettings.ts';

/** Who a token is asked for: the proof, and what kind of proof it is. */
export interface SubjectToken {
  token: string;
  /** A URN of RFC 8693, section 3. */
  type: string;
}

export interface Granted {
  kind: 'granted';
  token: string;
  expiresAtMs: number;
  /** How long it lives from when it was given. */
  lifeMs: number;
  /** With it another can be had without the subject; null: the server gave none. */
  refreshToken: string | null;
}

/** The server has said no, and would say so again. */
interface Refused {
  kind: 'refused';
  reason: string;
}

/** Nobody has said no: the server is away, slow, or does not take our own credential. */
interface Unavailable {
  kind: 'unavailable';
  reason: string;
}

export type Exchanged = Granted | Refused | Unavailable;

export interface TokenExchange {
  exchange(
    subject: SubjectToken,
    audience: AudienceSettings,
    wants?: ExchangeWish,
  ): Promise<Exchanged>;
  refresh(refreshToken: string, audience: AudienceSettings): Promise<Exchanged>;
}

export interface ExchangeWish {
  /** Asks for the scope that makes servers add a refresh token. */
  offlineAccess?: boolean;
  /** A refresh token in place of the token. */
  refreshToken?: boolean;
}
