/** Random values of what agents and the controller say to each other. */
import * as fc from 'fast-check';
import { END_CAUSES } from '../../src/model/attempt.ts';
import { HEALTH_SEVERITIES } from '../../src/model/health.ts';
import type { AttemptOrder, JoinRequest, Observation } from '../../src/protocol/agent.ts';
import type { ExchangeReply, ExchangeRequest } from '../../src/protocol/connector.ts';
import { bytes, defined, device, map, ms, nullable, small } from './arbitraries.ts';
import { stream, text, word } from './arbitraries.ts';
import { blobHash, orderParts } from './partArbitraries.ts';

const timers = fc.record({
  workerLeaseMs: ms,
  attemptLeaseMs: ms,
  killMarginMs: ms,
  longPollMs: ms,
});

const port = fc.integer({ min: 1, max: 65535 });
export const joinRequest: fc.Arbitrary<JoinRequest> = defined(
  fc.record({
    name: word,
    machine: word,
    bootId: text,
    address: text,
    network: text,
    agentVersion: text,
    capabilities: fc.array(text, { maxLength: 3 }),
    attributes: map,
    resources: fc.record({
      cpuMillis: bytes,
      memoryBytes: bytes,
      devices: fc.array(device, { maxLength: 3 }),
      portRange: fc.tuple(port, port),
    }),
    terms: fc.option(
      fc.record({
        tenants: fc.array(word, { maxLength: 3 }),
        interruptibleOnly: fc.boolean(),
      }),
      { nil: undefined },
    ),
    host: fc.option(word, { nil: undefined }),
    instance: fc.option(word, { nil: undefined }),
    fresh: fc.option(word, { nil: undefined }),
  }),
);

export const joinReply = fc.record({
  worker: text,
  token: text,
  clusterId: text,
  epoch: ms,
  timers,
});

/** Null exit codes and signals are left out here: absent says the same on the wire. */
const observation: fc.Arbitrary<Observation> = defined(
  fc.record({
    uid: text,
    state: fc.constantFrom('STARTING', 'RUNNING', 'STOPPING', 'ENDED'),
    cause: fc.option(fc.constantFrom(...END_CAUSES), { nil: undefined }),
    exitCode: fc.option(fc.integer({ min: -255, max: 255 }), { nil: undefined }),
    signal: fc.option(text, { nil: undefined }),
    message: fc.option(text, { nil: undefined }),
    hostFault: fc.option(fc.boolean(), { nil: undefined }),
    stdoutBytes: fc.option(bytes, { nil: undefined }),
    stderrBytes: fc.option(bytes, { nil: undefined }),
    idle: fc.option(fc.record({ message: text, stop: fc.boolean() }), { nil: undefined }),
    facts: fc.option(
      map.filter((facts) => Object.keys(facts).length > 0),
      { nil: undefined },
    ),
    progress: fc.option(text, { nil: undefined }),
    result: fc.option(fc.record({ manifest: blobHash, bytes }), { nil: undefined }),
    unstored: fc.constantFrom(true, undefined),
    held: fc.constantFrom(true, undefined),
  }) as fc.Arbitrary<Observation>,
);

const heldInput = fc.record({
  hash: fc.constantFrom('a', 'b').map((digit) => `sha256:${digit.repeat(64)}`),
  bytes: ms,
});

const healthProblem = defined(
  fc.record({
    check: word,
    severity: fc.constantFrom(...HEALTH_SEVERITIES),
    message: text,
    device: fc.option(small, { nil: undefined }),
  }),
);

export const syncRequest = defined(
  fc.record({
    worker: text,
    bootId: text,
    start: ms,
    seq: ms,
    epoch: ms,
    observed: fc.array(observation, { maxLength: 4 }),
    wait: fc.boolean(),
    held: fc.option(fc.array(heldInput, { maxLength: 3 }), { nil: undefined }),
    health: fc.option(fc.record({ problems: fc.array(healthProblem, { maxLength: 3 }) }), {
      nil: undefined,
    }),
  }),
);

const gang = fc.record({
  rank: small,
  size: small,
  round: small,
  token: text,
  worker: text,
  master: nullable(fc.record({ worker: text, address: text, port })),
  members: fc.array(fc.record({ worker: text, address: text }), { maxLength: 3 }),
  visibleGpus: fc.array(small, { maxLength: 3 }),
});

const plainOrder = defined(
  fc.record({
    uid: text,
    job: text,
    task: text,
    index: small,
    n: small,
    command: fc.array(text, { maxLength: 4 }),
    env: map,
    workdir: text,
    cpuMillis: bytes,
    memoryBytes: bytes,
    devices: fc.array(fc.record({ index: small, kind: text }), { maxLength: 3 }),
    share: small,
    ports: fc.array(port, { maxLength: 3 }),
    graceMs: ms,
    attemptLeaseMs: ms,
    gang: fc.option(gang, { nil: undefined }),
  }) as fc.Arbitrary<AttemptOrder>,
);

const order: fc.Arbitrary<AttemptOrder> = fc
  .tuple(plainOrder, defined(orderParts))
  .map(([plain, parts]) => ({ ...plain, ...parts }));

export const checkpointReport = fc.record({
  uid: text,
  manifest: blobHash,
  bytes,
  files: small,
  reason: text,
  takenBootMs: bytes,
});

export const syncReply = fc.record({
  clusterId: text,
  epoch: ms,
  generation: ms,
  desired: fc.array(order, { maxLength: 3 }),
  stop: fc.array(
    fc.record({
      uid: text,
      cause: fc.constantFrom(
        'cancelled' as const,
        'timed-out' as const,
        'preempted' as const,
        'gang-failed' as const,
        'lost' as const,
      ),
      graceMs: ms,
    }),
    { maxLength: 3 },
  ),
  acknowledged: fc.array(text, { maxLength: 3 }),
  tunnels: fc.array(fc.record({ gatewayUrl: text, ticket: text }), { maxLength: 2 }),
  timers,
});

export const chunks = fc.array(
  fc.record({
    uid: text,
    stream,
    offset: bytes,
    atMs: ms,
    bytes: fc.uint8Array({ maxLength: 64 }),
  }),
  { maxLength: 4 },
);
export const acks = fc.array(fc.record({ uid: text, stream, offset: bytes }), { maxLength: 4 });

const name = fc.stringMatching(/^[a-z0-9-]{1,20}$/);
export const exchangeRequest: fc.Arbitrary<ExchangeRequest> = fc.record({
  site: name,
  connector: name,
  wait: fc.boolean(),
  results: fc.array(
    fc.oneof(
      fc.record({
        id: name,
        kind: fc.constant('ended' as const),
        code: fc.integer({ min: 0, max: 255 }),
        stdout: text,
        stderr: text,
      }),
      fc.record({ id: name, kind: fc.constant('lost' as const), reason: text }),
      fc.record({ id: name, kind: fc.constant('not-started' as const), reason: text }),
    ),
    { maxLength: 3 },
  ),
});

export const exchangeReply: fc.Arbitrary<ExchangeReply> = fc.record({
  commands: fc.array(fc.record({ id: name, argv: fc.array(text), stdin: text, timeoutMs: ms }), {
    maxLength: 3,
  }),
});
