/** What a connector and the controller say to each other: commands out, their ends back. */
import { z } from 'zod';
import { CONNECTOR_LIMITS, type ConnectorCommand } from '../model/connector.ts';

const id = z.string().min(1).max(100);
const output = z.string().max(CONNECTOR_LIMITS.resultBytes);
const reason = z.string().max(4096);

const result = z.discriminatedUnion('kind', [
  z.strictObject({ id, kind: z.literal('ended'), code: z.int(), stdout: output, stderr: output }),
  z.strictObject({ id, kind: z.literal('lost'), reason }),
  z.strictObject({ id, kind: z.literal('not-started'), reason }),
]);

export const exchangeRequest = z.strictObject({
  site: z.string().min(1).max(100),
  /** Random with each start: a newer call of the same one takes the place of one that is held. */
  connector: id,
  results: z.array(result).max(CONNECTOR_LIMITS.results),
  /** False: answer at once, do not hold the call. */
  wait: z.boolean(),
});
export type ExchangeRequest = z.infer<typeof exchangeRequest>;

export interface ExchangeReply {
  /** To be run once each, and answered. Who does not answer in time has lost them. */
  commands: ConnectorCommand[];
}

export interface ConnectorCalls {
  /** A connector brings results and fetches commands of its site; held for some where it waits. */
  exchangeCommands(joinToken: string, request: ExchangeRequest): Promise<ExchangeReply>;
}
