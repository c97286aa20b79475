/** What agents send, well formed, for a test that sends it with tokens of other people. */
import { AGENT_PATHS } from '../../../src/protocol/agent.ts';
import { encodeLogFrames, LOG_FRAMES_CONTENT_TYPE } from '../../../src/protocol/logFrames.ts';
import type { CallOptions } from '../../support/journey.ts';
import { machine } from '../../support/testController.ts';
import type { Things } from './world.ts';

export function agentCalls({ attempt, worker, blob }: Things) {
  const bytes = Buffer.from('from a stranger');
  const frames = encodeLogFrames([{ uid: attempt, stream: 'stdout', offset: 0, atMs: 1, bytes }]);
  const logs: CallOptions = { raw: frames, headers: { 'content-type': LOG_FRAMES_CONTENT_TYPE } };
  const sync = { bootId: 'b', start: 1, seq: 1, epoch: 0, observed: [], wait: false };
  const connector = { site: 'hpc', connector: 'c' };
  const checkpoint = { manifest: blob, bytes: 1, files: 1, reason: 'asked' };
  const calls: Record<string, { body?: unknown; options?: CallOptions }> = {
    [`POST ${AGENT_PATHS.join}`]: { body: machine('stranger') },
    [`POST ${AGENT_PATHS.sync}`]: { body: { ...sync, worker } },
    [`POST ${AGENT_PATHS.logs}`]: { options: logs },
    [`POST ${AGENT_PATHS.checkpoint}`]: { body: { ...checkpoint, uid: attempt } },
    [`POST ${AGENT_PATHS.secrets}`]: { body: { uid: attempt } },
    [`POST ${AGENT_PATHS.tokens}`]: { body: { uid: attempt } },
    [`POST ${AGENT_PATHS.connector}`]: { body: { ...connector, results: [], wait: false } },
  };
  return calls;
}
