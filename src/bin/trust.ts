/** Whom an agent trusts and what it shows: in each of its threads that call. */
import { systemClock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { TlsFiles } from '../lib/tls/files.ts';
import type { Settings } from '../model/settings.ts';
import { clientPemFiles, useClientTls } from '../protocol/clientTls.ts';

export type AgentTls = Pick<Settings['agent'], 'caFile' | 'certFile' | 'keyFile'>;

/** Whom this thread trusts and what it shows from now on, also after the files have changed. */
export function trustAgentFiles(agent: AgentTls, log: Log): { close(): void } {
  const names = {
    caFile: 'agent.caFile',
    certFile: 'agent.certFile',
    keyFile: 'agent.keyFile',
  };
  const files = clientPemFiles(agent, names);
  if (Object.keys(files).length === 0) return { close() {} };
  const tls = new TlsFiles({ files, clock: systemClock, log });
  useClientTls(tls);
  tls.onChange(() => useClientTls(tls));
  return tls;
}
