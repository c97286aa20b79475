/** The client's half of what agents say. */
import type { Coordinator } from '../coordinator.ts';
import * as agents from './agentMessages.ts';
import { METADATA } from './caller.ts';
import * as connector from './connectorMessages.ts';
import * as tokens from './downstreamMessages.ts';
import { WAIT_PIECE_MS, type Connection } from './connection.ts';

type AgentCall =
  | 'join'
  | 'sync'
  | 'appendLogs'
  | 'addCheckpoint'
  | 'attemptAccess'
  | 'attemptSecrets'
  | 'attemptTokens'
  | 'exchangeCommands';

export function agentCalls({ agent, call }: Connection): Pick<Coordinator, AgentCall> {
  return {
    join: (token, request) =>
      call(
        as(token),
        (options) => agent.join(agents.joinRequestToWire(request), options),
        agents.joinReplyFromWire,
      ),
    sync: (token, request) =>
      call(
        as(token),
        (options) => agent.sync(agents.syncRequestToWire(request), options),
        agents.syncReplyFromWire,
        WAIT_PIECE_MS,
      ),
    addCheckpoint: (token, report) =>
      call(
        as(token),
        (options) => agent.addCheckpoint(agents.checkpointReportToWire(report), options),
        () => undefined,
      ),
    attemptSecrets: (worker, uid) =>
      call(
        as(worker),
        (options) => agent.attemptSecrets({ uid }, options),
        ({ values, token = null }) => ({ values: { ...values }, token }),
      ),
    attemptTokens: (worker, uid) =>
      call(
        as(worker),
        (options) => agent.attemptTokens({ uid }, options),
        tokens.attemptTokensFromWire,
      ),
    exchangeCommands: (token, request) =>
      call(
        as(token),
        (options) => agent.exchangeCommands(connector.requestToWire(request), options),
        connector.replyFromWire,
        WAIT_PIECE_MS,
      ),
    attemptAccess: (token, uid) =>
      call(
        as(token),
        (options) => agent.attemptAccess({ uid }, options),
        agents.attemptAccessFromWire,
      ),
    appendLogs: (token, chunks) =>
      call(
        as(token),
        (options) => agent.appendLogs({ chunks: chunks.map(agents.chunkToWire) }, options),
        ({ acks }) => acks.map(agents.ackFromWire),
      ),
  };
}

function as(token: string): Record<string, string> {
  return { [METADATA.authorization]: `Bearer ${token}` };
}
