/** What agents say passes through to the controller, which also checks their tokens. */
import { DroverError } from '../lib/errors.ts';
import { AGENT_PATHS, attemptSecretsRequest, checkpointReport } from '../protocol/agent.ts';
import { joinRequest, syncRequest } from '../protocol/agent.ts';
import type { LogChunk } from '../protocol/agent.ts';
import { exchangeRequest } from '../protocol/connector.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { App } from './app.ts';
import type { GatewayLimits } from './limits.ts';

const BYTES = 'application/octet-stream';

export interface AgentRouteOptions {
  coordinator: Coordinator;
  limits: GatewayLimits;
  /** Throws a DroverError where the bytes are not frames. */
  decodeLogFrames: (body: Uint8Array) => LogChunk[];
}

export function agentRoutes(app: App, options: AgentRouteOptions): void {
  const { coordinator, limits } = options;
  app.route({
    method: 'POST',
    url: AGENT_PATHS.join,
    config: { access: 'agent' },
    schema: { body: joinRequest },
    handler: ({ bearer, body }) => coordinator.join(bearer, body),
  });

  app.route({
    method: 'POST',
    url: AGENT_PATHS.sync,
    bodyLimit: limits.syncBodyBytes,
    config: { access: 'agent', pace: 'longPoll' },
    schema: { body: syncRequest },
    handler: ({ bearer, body }) => coordinator.sync(bearer, body),
  });

  app.route({
    method: 'POST',
    url: AGENT_PATHS.checkpoint,
    config: { access: 'agent' },
    schema: { body: checkpointReport },
    handler: async ({ bearer, body }) => {
      await coordinator.addCheckpoint(bearer, body);
      return {};
    },
  });

  app.route({
    method: 'POST',
    url: AGENT_PATHS.secrets,
    config: { access: 'agent' },
    schema: { body: attemptSecretsRequest },
    handler: async ({ bearer, body }, reply) => {
      const secrets = await coordinator.attemptSecrets(bearer, body.uid);
      return reply.header('cache-control', 'no-store').send(secrets);
    },
  });

  app.route({
    method: 'POST',
    url: AGENT_PATHS.tokens,
    config: { access: 'agent' },
    schema: { body: attemptSecretsRequest },
    handler: async ({ bearer, body }, reply) => {
      const tokens = await coordinator.attemptTokens(bearer, body.uid);
      return reply.header('cache-control', 'no-store').send(tokens);
    },
  });

  app.route({
    method: 'POST',
    url: AGENT_PATHS.connector,
    bodyLimit: limits.connectorBodyBytes,
    config: { access: 'agent', pace: 'longPoll' },
    schema: { body: exchangeRequest },
    handler: async ({ bearer, body }, reply) => {
      const commands = await coordinator.exchangeCommands(bearer, body);
      return reply.header('cache-control', 'no-store').send(commands);
    },
  });

  app.register((scope, _options, done) => {
    logRoute(scope, options);
    done();
  });
}

/** Its own scope, so that bytes are read here and nowhere else. */
function logRoute(app: App, { coordinator, limits, decodeLogFrames }: AgentRouteOptions): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(BYTES, { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );
  app.route({
    method: 'POST',
    url: AGENT_PATHS.logs,
    bodyLimit: limits.logBodyBytes,
    config: { access: 'agent', reads: BYTES },
    handler: async ({ bearer, body }) => {
      if (!Buffer.isBuffer(body)) {
        throw new DroverError('MALFORMED_BODY', 'The body holds no log frames', {
          hint: `Send "Content-Type: ${BYTES}" with at least one frame.`,
        });
      }
      return coordinator.appendLogs(bearer, decodeLogFrames(body));
    },
  });
}
