/** The section of the settings that an agent reads. */
import { z } from 'zod';
import { HEALTH_CHECKS } from './health.ts';
import { bytes, duration, GIB, HOUR, MINUTE, SECOND, section, text } from './settingKinds.ts';

export const agentSettings = section({
  name: z.string().max(200).default(''),
  resources: text.default(''),
  pool: z.string().min(1).max(100).default('default'),
  /** Set by whoever starts an agent for a provider; empty: as the machine itself tells. */
  machine: z.string().max(255).default(''),
  host: z.string().max(255).default(''),
  instance: z.string().max(255).default(''),
  /** Without contact for this long it ends itself; 0: never. */
  selfDestructAfterMs: z.int().min(0).default(0),
  /** What ends the machine then, for a shell; empty: the agent's own end is enough. */
  selfDestructCommand: text.default(''),
  /** Also tunnels to other gateways go by the URL it joined at: nothing else can be reached. */
  dialHome: z.boolean().default(false),
  address: z.string().max(255).default(''),
  network: z.string().max(255).default(''),
  dataDir: text.default(''),
  /** Whom to trust beside the public authorities, and what to show where the gateway asks. */
  caFile: text.default(''),
  certFile: text.default(''),
  keyFile: text.default(''),
  attributes: z.record(z.string().min(1).max(63), z.string().max(256)).default({}),
  /** Code and inputs, kept by their hash for the next attempt. */
  cache: section({
    folder: text.default(''),
    maxBytes: bytes.default(100 * GIB),
  }),
  /** Which of them starts images: the first that works, this one, or none. */
  containerRuntime: z
    .enum(['auto', 'podman', 'docker', 'apptainer', 'enroot', 'none'])
    .default('auto'),
  /** Whether the machine is itself a container. */
  insideContainer: z.enum(['auto', 'yes', 'no']).default('auto'),
  /** What was built from lock files, and images as files. */
  environments: section({
    keep: z.int().min(1).max(10_000).default(20),
    maxBytes: bytes.default(100 * GIB),
  }),
  /** How often an attempt's CPU, memory and devices are measured. */
  metricsMs: duration.min(100).default(10 * SECOND),
  /** How the machine itself is looked after. */
  health: section({
    periodMs: duration.min(SECOND).max(HOUR).default(MINUTE),
    /** A site's own check, for a shell; empty: none. */
    command: text.default(''),
    commandLimitMs: duration.max(10 * MINUTE).default(30 * SECOND),
    minFreeBytes: z.int().min(0).default(GIB),
    /** What these find is shown, and work goes on. */
    warnOnly: z.array(z.enum(HEALTH_CHECKS)).max(HEALTH_CHECKS.length).default([]),
  }),
  accepts: section({
    tenants: z.array(z.string().min(1).max(100)).max(1000).default([]),
    interruptibleOnly: z.boolean().default(false),
  }),
});
