/** What a pool says of its salad provider. */
import { z } from 'zod';
import { isSafeUrl } from '../lib/safeUrl.ts';
import { duration, GIB, MIB, SECOND, text } from './settingKinds.ts';

/** As SaladCloud has it for organizations, projects and groups. */
const saladName = z.string().regex(/^[a-z][a-z0-9-]{0,61}[a-z0-9]$/, {
  message: 'is 2 to 63 of a-z, 0-9 and -, and begins with a letter',
});

/** No more: SaladCloud refuses longer ones. */
export const LONGEST_VARIABLE = 1000;
const variable = z.string().max(LONGEST_VARIABLE);

/** Runs in the container, in an environment with DROVER_URL and DROVER_JOIN_TOKEN. */
const AGENT_COMMAND =
  'curl -fsS --retry 5 ${DROVER_CA_FILE:+--cacert "$DROVER_CA_FILE"} -o /tmp/drover-join.sh ' +
  '"$DROVER_URL/install/join.sh" && exec sh /tmp/drover-join.sh';

export const saladPool = z.strictObject({
  organization: saladName,
  project: saladName,
  /** Holds the API key and nothing else; empty: it is in the variable SALAD_API_KEY. */
  apiKeyFile: text.default(''),
  url: text
    .refine(isSafeUrl, { message: 'is no https:// address without a password in it' })
    .default('https://api.salad.com/api/public'),
  /** With what the agent's command needs: a shell, curl, coreutils, glibc and libstdc++. */
  image: z.string().min(1).max(2048),
  agentCommand: text.min(1).default(AGENT_COMMAND),
  /** Beside what the agent needs. No secrets: whoever sees the group sees them. */
  environment: z.record(z.string().regex(/^[A-Za-z_]\w*$/), variable).default({}),
  cpus: z.int().min(1).max(1024).default(2),
  memoryBytes: z
    .int()
    .min(GIB)
    .max(1024 * 1024 * GIB)
    .default(4 * GIB),
  /** Names or ids; the first that is free is taken. Empty: no GPU. */
  gpuClasses: z.array(z.string().min(2).max(63)).max(100).default([]),
  storageBytes: z
    .int()
    .min(GIB)
    .max(1024 * 1024 * GIB)
    .default(GIB),
  /** Shared memory. */
  shmBytes: z
    .int()
    .min(64 * MIB)
    .max(1024 * 1024 * GIB)
    .default(64 * MIB),
  priority: z.enum(['high', 'medium', 'low', 'batch']).default('high'),
  /** Where the machines may stand; empty: anywhere. */
  countryCodes: z
    .array(z.string().regex(/^[a-z]{2}$/))
    .max(500)
    .default([]),
  /** Of the GPU class, before the pool's pricePerInstanceHour. */
  publishedPrices: z.boolean().default(true),
  /**
   * SaladCloud takes 240 a minute of a key, and half as many as this are saved up: 160 is the most.
   * Pools that share a key share them out.
   */
  requestsPerMinute: z.int().min(10).max(160).default(120),
  replyTimeoutMs: duration.default(10 * SECOND),
});
export type SaladSettings = z.output<typeof saladPool>;
