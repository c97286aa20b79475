/** From a bearer token to who is calling: by the key file, by an issuer, or by the controller. */
import type { Clock } from '../../lib/clock.ts';
import { DroverError, ERRORS } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { AuthSettings } from '../../model/authSettings.ts';
import { GATEWAY_KEY_PREFIX } from '../../model/gatewayKey.ts';
import type { TokenId } from '../../model/ids.ts';
import { scopesOf } from '../../model/roles.ts';
import type { Identity, Principal } from '../../model/token.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import { createJwtCheck, looksLikeJwt } from './jwt.ts';
import { KeyFile } from './keyFile.ts';
import { AUTH_LIMITS, type AuthLimits } from './limits.ts';
import { refused } from './refusal.ts';

/** A caller, and until when that may be remembered without asking again. */
export interface Admitted extends Principal {
  untilMs?: number;
}

/** Undefined when the token is nobody's; rejects with a DroverError that says more. */
export type Authenticate = (secret: string) => Promise<Admitted | undefined>;

export interface AuthenticateOptions {
  coordinator: Pick<Coordinator, 'authenticate' | 'admit'>;
  clock: Clock;
  log: Log;
  limits?: Partial<AuthLimits>;
}

/** Rejects where the key file cannot be read. */
export async function openAuthenticate(
  { issuers, keyFile }: AuthSettings,
  options: AuthenticateOptions,
): Promise<Authenticate> {
  const { coordinator, clock, log } = options;
  const limits = { ...AUTH_LIMITS, ...options.limits };
  const checkJwt = createJwtCheck({ issuers, clock, log, limits });
  const keys = keyFile ? await KeyFile.open({ path: keyFile, clock, log, limits }) : undefined;
  const admit = createAdmit(coordinator);
  return async (secret) => {
    if (keys && secret.startsWith(GATEWAY_KEY_PREFIX)) {
      const identity = await keys.find(secret);
      if (!identity) return undefined;
      const untilMs = Math.min(identity.expiresAtMs, clock.now() + limits.fileKeyMs);
      return { ...(await admit(identity)), untilMs };
    }
    // A token of somebody who is not configured here is not shown to the controller either.
    if (issuers.length > 0 && looksLikeJwt(secret)) {
      const { identity, untilMs } = await checkJwt(secret);
      return { ...(await admit(identity)), untilMs };
    }
    return unlessUnknown(() => coordinator.authenticate(secret), undefined);
  };
}

/** The controller knows who has left; a foreign one does not, and takes the issuer's word. */
function createAdmit(
  coordinator: Pick<Coordinator, 'admit'>,
): (identity: Identity) => Promise<Principal> {
  // One that never had the call need not be asked for it while it is away.
  let isForeign = false;
  return async (identity) => {
    const ask = async (): Promise<Principal | undefined> => {
      try {
        const answer = await coordinator.admit(identity);
        isForeign = false;
        return answer;
      } catch (error) {
        isForeign ||= isUnknownCall(error);
        if (isUnknownCall(error) || (isForeign && isAway(error))) return vouchedFor(identity);
        throw error;
      }
    };
    const principal = await ask();
    if (principal) return principal;
    throw refused(
      `${identity.user} has left the tenant ${identity.tenant}, or the tenant is suspended`,
      'Ask an administrator of this installation.',
    );
  };
}

function vouchedFor({ issuer, subject, tenant, user, roles }: Identity): Principal {
  const token = `${issuer} ${subject}` as TokenId;
  return { token, tenant, user, scopes: scopesOf(roles), identity: { issuer, subject } };
}

/** gRPC's number for it. */
const UNIMPLEMENTED = 12;

/** A foreign coordinator need not have the call. */
async function unlessUnknown<Answer>(
  call: () => Promise<Answer>,
  otherwise: Answer,
): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    if (isUnknownCall(error)) return otherwise;
    throw error;
  }
}

function isUnknownCall(error: unknown): boolean {
  return error instanceof DroverError && ERRORS[error.code].grpc === UNIMPLEMENTED;
}

function isAway(error: unknown): boolean {
  return error instanceof DroverError && ['UNAVAILABLE', 'TIMEOUT'].includes(error.code);
}
