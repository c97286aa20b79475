/** drover.v1.Agent on top of the contract. The controller checks join and worker tokens itself. */
import type { ServiceImpl } from '@connectrpc/connect';
import { checkpointReport, joinRequest, syncRequest } from '../agent.ts';
import { exchangeRequest } from '../connector.ts';
import type { Coordinator } from '../coordinator.ts';
import type { Agent } from '../gen/drover/v1/agent_pb.ts';
import * as messages from './agentMessages.ts';
import { tokenOf } from './caller.ts';
import { notNegative, parse } from './check.ts';
import * as connector from './connectorMessages.ts';
import { attemptTokensToWire } from './downstreamMessages.ts';

export function agentService(coordinator: Coordinator): ServiceImpl<typeof Agent> {
  return {
    async join(request, context) {
      const wanted = parse(joinRequest, messages.joinRequestFromWire(request));
      return messages.joinReplyToWire(await coordinator.join(tokenOf(context), wanted));
    },
    async sync(request, context) {
      const observed = parse(syncRequest, messages.syncRequestFromWire(request));
      return messages.syncReplyToWire(await coordinator.sync(tokenOf(context), observed));
    },
    async appendLogs(request, context) {
      const chunks = request.chunks.map(messages.chunkFromWire);
      for (const chunk of chunks) notNegative(chunk.offset, 'offset');
      const acks = await coordinator.appendLogs(tokenOf(context), chunks);
      return { acks: acks.map(messages.ackToWire) };
    },
    async addCheckpoint(request, context) {
      const report = parse(checkpointReport, messages.checkpointReportFromWire(request));
      await coordinator.addCheckpoint(tokenOf(context), report);
      return {};
    },
    async attemptSecrets({ uid }, context) {
      const { values, token } = await coordinator.attemptSecrets(tokenOf(context), uid);
      return { values, token: token ?? undefined };
    },
    async attemptTokens({ uid }, context) {
      return attemptTokensToWire(await coordinator.attemptTokens(tokenOf(context), uid));
    },
    async exchangeCommands(request, context) {
      const brought = parse(exchangeRequest, connector.requestFromWire(request));
      return connector.replyToWire(await coordinator.exchangeCommands(tokenOf(context), brought));
    },
    async attemptAccess({ uid }, context) {
      return (await coordinator.attemptAccess(tokenOf(context), uid)) ?? {};
    },
  };
}
