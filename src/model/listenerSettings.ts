/** Settings of who may connect to the gateway and how: TLS, addresses, origins of web pages. */
import { z } from 'zod';
import { addressProblem } from '../lib/addressList.ts';
import { isLoopback } from '../lib/loopback.ts';
import { section, text } from './settingKinds.ts';
import type { Settings } from './settings.ts';

const ENTRIES_LIMIT = 1000;

const addresses = z
  .array(
    text.superRefine((entry, context) => {
      const message = addressProblem(entry);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    }),
  )
  .max(ENTRIES_LIMIT)
  .default([]);

/** As browsers send it: scheme, host and port, nothing after. */
const origin = text.refine(
  (entry) => URL.parse(entry)?.origin === entry,
  'expected an origin, as https://dashboard.example.org; each is named, there is no *',
);

/** Of the section `server`. */
export const listenerSettings = {
  certFile: text.default(''),
  keyFile: text.default(''),
  clientCaFile: text.default(''),
  allow: addresses,
  trustedProxies: addresses,
  cors: section({ origins: z.array(origin).max(ENTRIES_LIMIT).default([]) }),
};

type Fail = (setting: string, message: string) => void;

export function checkListener(server: Settings['server'], fail: Fail): void {
  const { certFile, keyFile, clientCaFile } = server;
  if (!certFile !== !keyFile) {
    fail('server.certFile', 'needs server.keyFile, and the other way round');
  }
  if (clientCaFile && !certFile) {
    fail('server.clientCaFile', 'asks clients for certificates, which needs server.certFile');
  }
}

/** What an agent shows, where it is asked. */
export function checkAgentTls({ certFile, keyFile }: Settings['agent'], fail: Fail): void {
  if (!certFile === !keyFile) return;
  fail('agent.certFile', 'needs agent.keyFile, and the other way round');
}

const READABLE = 'has no TLS: tokens cross the network readable';

/**
 * What is readable on the network because `insecure` allows it, a sentence each. Told wherever
 * somebody looks: the log, the greeting, answers, metrics.
 */
export function httpExposures({ server }: Pick<Settings, 'server'>): string[] {
  if (server.certFile || isLoopback(server.host)) return [];
  return [`HTTP on ${server.host} ${READABLE}`];
}

export function grpcExposures({ grpc }: Pick<Settings, 'grpc'>): string[] {
  if (!grpc.enabled || grpc.certFile || isLoopback(grpc.host)) return [];
  return [`gRPC on ${grpc.host} ${READABLE}`];
}
