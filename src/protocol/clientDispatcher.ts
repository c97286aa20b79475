/** Loaded where a certificate is to be shown: from then on fetch and undici connect with it. */
import { Agent, buildConnector, setGlobalDispatcher } from 'undici';
import { shownCertificate } from './clientTls.ts';

/** undici's own limit. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Connects with what is to be shown at that time, which a renewal changes. */
export function tlsConnector(timeoutMs: number): ReturnType<typeof buildConnector> {
  return (options, callback) =>
    buildConnector({ timeout: timeoutMs, ...shownCertificate() })(options, callback);
}

setGlobalDispatcher(new Agent({ connect: tlsConnector(CONNECT_TIMEOUT_MS) }));
