/**
 * How an agent reaches its cluster: JSON over HTTP on kept-alive connections, always dialled by it.
 */
import { Agent as Connections, request } from 'undici';
import { DroverError, ERRORS, type ErrorCode } from '../lib/errors.ts';
import { AGENT_PATHS, type CheckpointReport, type JoinReply } from '../protocol/agent.ts';
import type { AttemptSecrets, AttemptTokens, LogAck, SyncReply } from '../protocol/agent.ts';
import { tlsConnector } from '../protocol/clientDispatcher.ts';
import type { AgentTransport } from './agent.ts';

export interface HttpTransport extends AgentTransport {
  sendLogs(workerToken: string, body: Uint8Array): Promise<LogAck[]>;
  addCheckpoint(workerToken: string, report: CheckpointReport): Promise<void>;
  attemptSecrets(workerToken: string, uid: string): Promise<AttemptSecrets>;
  attemptTokens(workerToken: string, uid: string): Promise<AttemptTokens>;
  close(): Promise<void>;
}

/** Longer than the controller holds a call, so that only a dead connection runs into it. */
const CALL_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5000;
/** A parked sync, the one that overtakes it, and logs. */
const CONNECTIONS = 4;

/** `onDate` is told the server's time with every reply, as HTTP writes it. */
export function httpTransport(url: string, onDate?: (header: string) => void): HttpTransport {
  const dispatcher = new Connections({
    connections: CONNECTIONS,
    connect: tlsConnector(CONNECT_TIMEOUT_MS),
    headersTimeout: CALL_TIMEOUT_MS,
    bodyTimeout: CALL_TIMEOUT_MS,
  });

  async function call(path: string, token: string, type: string, body: string | Uint8Array) {
    const response = await request(new URL(path, url), {
      method: 'POST',
      dispatcher,
      headers: { authorization: `Bearer ${token}`, 'content-type': type },
      body,
    });
    const { date } = response.headers;
    if (typeof date === 'string') onDate?.(date);
    const text = await response.body.text();
    if (response.statusCode === 200) return JSON.parse(text) as unknown;
    throw problemOf(response.statusCode, text);
  }

  const json = 'application/json';
  return {
    join: async (token, body) =>
      (await call(AGENT_PATHS.join, token, json, JSON.stringify(body))) as JoinReply,
    sync: async (token, body) =>
      (await call(AGENT_PATHS.sync, token, json, JSON.stringify(body))) as SyncReply,
    sendLogs: async (token, body) =>
      (await call(AGENT_PATHS.logs, token, 'application/octet-stream', body)) as LogAck[],
    addCheckpoint: async (token, body) => {
      await call(AGENT_PATHS.checkpoint, token, json, JSON.stringify(body));
    },
    attemptSecrets: async (token, uid) =>
      (await call(AGENT_PATHS.secrets, token, json, JSON.stringify({ uid }))) as AttemptSecrets,
    attemptTokens: async (token, uid) =>
      (await call(AGENT_PATHS.tokens, token, json, JSON.stringify({ uid }))) as AttemptTokens,
    close: () => dispatcher.destroy(),
  };
}

function problemOf(status: number, text: string): Error {
  try {
    const { code, detail, hint } = JSON.parse(text) as Record<string, string>;
    if (code && Object.hasOwn(ERRORS, code)) {
      return new DroverError(code as ErrorCode, detail ?? '', hint === undefined ? {} : { hint });
    }
  } catch {
    // Not ours: a proxy in between answered. Its status says enough.
  }
  return new Error(`the server answered ${status}: ${text.slice(0, 200)}`);
}
