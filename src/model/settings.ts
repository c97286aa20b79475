/**
 * Every setting of Drover with its default, in one schema. It lies in model/, the lowest folder
 * that may know domain words: every part may name its section's type, and none may import bin/.
 */
import { z } from 'zod';
import { authSettings, checkAuth } from './authSettings.ts';
import { blobSettings, checkBlobs } from './blobSettings.ts';
import { checkSecrets, secretSettings } from './secretSettings.ts';
import { checkExchange, exchangeSettings } from './exchangeSettings.ts';
import { gatewaySettings } from './gatewaySettings.ts';
import { checkGrpc } from './grpcSettings.ts';
import { limitSettings } from './limitSettings.ts';
import { checkAgentTls, checkListener, listenerSettings } from './listenerSettings.ts';
import { checkNotify, notifySettings } from './notifySettings.ts';
import { agentSettings } from './agentSettings.ts';
import { trainingSettings } from './trainingSettings.ts';
import { poolSettings } from './poolSettings.ts';
import { checkSlurm, slurmSite } from './slurmSettings.ts';
import { readSecrets, refuseSecret } from './secretFiles.ts';
import { IDLE_ACTIONS } from './jobParts.ts';
import { bytes, duration, GIB, HOUR, KIB, MIB, MINUTE, period } from './settingKinds.ts';
import { port, SECOND, section, text } from './settingKinds.ts';
import { loadConfig } from '../lib/config.ts';
import { DroverError } from '../lib/errors.ts';

/** Below the 30 s after which an agent gives a call up. */
const LONGEST_POLL_MS = 20_000;

const data = section({ dir: text.min(1).default('~/.drover') });

const server = section({
  host: text.min(1).default('127.0.0.1'),
  port: port.default(7070),
  publicUrl: text.default(''),
  insecure: z.boolean().default(false),
  ...listenerSettings,
  bodyLimitBytes: bytes
    .min(KIB)
    .max(GIB)
    .default(16 * MIB),
  installFolder: text.default(''),
  unaryTimeoutMs: duration.default(30 * SECOND),
  streamTimeoutMs: duration.default(HOUR),
});

const grpc = section({
  enabled: z.boolean().default(true),
  host: text.min(1).default('127.0.0.1'),
  port: port.default(7071),
  insecure: z.boolean().default(false),
  apiSecret: text.default(''),
  apiSecretFile: text.default(''),
  certFile: text.default(''),
  keyFile: text.default(''),
  caFile: text.default(''),
});

const store = section({
  kind: z.enum(['sqlite', 'postgres']).default('sqlite'),
  url: text.default(''),
  urlFile: text.default(''),
  cacheBytes: bytes.min(MIB).default(64 * MIB),
  checkpointPages: z.int().min(100).default(10_000),
});

const cluster = section({
  name: z.string().min(1).max(63).default('local'),
});

const leases = section({
  workerMs: duration.default(30 * SECOND),
  attemptMs: duration.default(5 * MINUTE),
  killMarginMs: duration.default(15 * SECOND),
  longPollMs: duration.max(LONGEST_POLL_MS).default(10 * SECOND),
});

const loops = section({
  scheduleMs: period.default(SECOND),
  leasesMs: period.default(SECOND),
  deadlinesMs: period.default(SECOND),
  chargesMs: period.default(10 * SECOND),
  noticesMs: period.default(SECOND),
  capacityMs: period.default(SECOND),
});

const schedule = section({
  halfLifeMs: duration.default(7 * 24 * 60 * MINUTE),
  ageingMs: duration.default(24 * 60 * MINUTE),
  backfill: z.boolean().default(true),
  preemption: z.boolean().default(true),
});

const logs = section({
  level: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  maxJobBytes: bytes.default(GIB),
  segmentBytes: bytes
    .min(4 * KIB)
    .max(GIB)
    .default(8 * MIB),
});

/** For jobs that have no rule of their own on devices that do nothing. */
const idleDevices = section({
  belowPercent: z.number().min(0).max(100).default(5),
  forMs: duration.min(SECOND).default(30 * MINUTE),
  action: z.enum(['none', ...IDLE_ACTIONS]).default('warn'),
});

const fleet = section({
  /** By name. The pool `default` exists without being named. */
  pools: z.record(z.string().min(1).max(100), poolSettings).default({}),
  /** Where agents of launched machines dial; empty: this server's own URL. */
  agentUrl: text.default(''),
  /** Slurm installations by name, each with one or more pools. */
  sites: z.record(z.string().regex(/^[\w-]{1,100}$/), slurmSite).default({}),
});

const policy = section({ file: text.default('') });

const sections = z.strictObject({
  data,
  server,
  gateway: gatewaySettings,
  auth: authSettings,
  grpc,
  store,
  blobs: blobSettings,
  secrets: secretSettings,
  exchange: exchangeSettings,
  notify: notifySettings,
  cluster,
  leases,
  loops,
  schedule,
  logs,
  agent: agentSettings,
  idleDevices,
  training: trainingSettings,
  fleet,
  policy,
  limits: limitSettings,
});
export type Settings = z.output<typeof sections>;
export const settingsSchema = sections.superRefine(checkTogether);

export const VARIABLE_PREFIX = 'DROVER_';
/** Variables the command line and older scripts know by a short name. */
const ALIASES = {
  DROVER_DATA: 'data.dir',
  DROVER_LOG_LEVEL: 'logs.level',
  DROVER_CA_FILE: 'agent.caFile',
  DROVER_CERT_FILE: 'agent.certFile',
  DROVER_KEY_FILE: 'agent.keyFile',
};
/** Drover's variables that are no settings: where the file and the server are, and a task's own. */
const OTHER_VARIABLES = [
  /^DROVER_(CONFIG|URL|TOKEN|JOIN_TOKEN)$/,
  /^DROVER_(JOB|TASK|ATTEMPT|ARRAY|GANG|PORT|PORTS|WORKER|CHECKPOINT|RESULT|METRICS)(_|$)/,
  /^DROVER_(INPUTS|SECRETS|TOKENS|RESUME)$/,
];

export interface SettingsSources {
  env: Readonly<Record<string, string | undefined>>;
  /** By setting, `{ 'server.port': 8080 }`; undefined means the flag was not given. */
  argvOverrides?: Readonly<Record<string, unknown>>;
  /** Returns the file's text; throws as `readFileSync` does. */
  readFile: (path: string) => string;
}

export interface LoadedSettings {
  settings: Settings;
  /** For a person, one sentence each; nothing was refused. */
  warnings: string[];
}

/** The settings of this process. Throws DroverError with every problem found. */
export function loadSettings(sources: SettingsSources): LoadedSettings {
  const { env, argvOverrides = {}, readFile } = sources;
  const { file, warnings } = findFile(env, readFile);
  const loaded = loadConfig({
    schema: settingsSchema,
    prefix: VARIABLE_PREFIX,
    env,
    overrides: argvOverrides,
    aliases: ALIASES,
    otherVariables: OTHER_VARIABLES,
    refuseInFile: refuseSecret,
    ...(file ? { file } : {}),
  });
  const settings = resolvePaths(loaded.config, env['HOME']);
  return {
    settings: readSecrets(settings, readFile),
    warnings: [...warnings, ...loaded.warnings],
  };
}

function checkTogether(settings: Settings, context: z.RefinementCtx): void {
  const fail = (setting: string, message: string): void =>
    context.addIssue({ code: 'custom', path: setting.split('.'), message });
  const { leases: lease, store: database } = settings;
  if (lease.longPollMs >= lease.workerMs) {
    fail('leases.longPollMs', `must be below leases.workerMs (${lease.workerMs})`);
  }
  if (lease.workerMs > lease.attemptMs) {
    fail('leases.workerMs', `must be at most leases.attemptMs (${lease.attemptMs})`);
  }
  if (lease.killMarginMs >= lease.attemptMs) {
    fail('leases.killMarginMs', `must be below leases.attemptMs (${lease.attemptMs})`);
  }
  const named = [database.url, database.urlFile].filter((value) => value !== '').length;
  if (database.kind === 'postgres' && named !== 1) {
    fail('store.url', 'PostgreSQL needs one of store.url (as DROVER_STORE_URL) and store.urlFile');
  }
  if (database.kind === 'sqlite' && named > 0) {
    fail('store.kind', 'store.url and store.urlFile are for postgres; SQLite lies in data.dir');
  }
  checkAuth(settings.auth, fail);
  checkListener(settings.server, fail);
  checkAgentTls(settings.agent, fail);
  checkGrpc(settings.grpc, fail);
  checkBlobs(settings.blobs, fail);
  checkSecrets(settings.secrets, fail);
  checkExchange(settings.exchange, fail);
  checkNotify(settings.notify, fail);
  checkSlurm(settings.fleet, fail);
}

/** The file is optional; one that was named and is absent is worth a word. */
function findFile(
  env: SettingsSources['env'],
  readFile: SettingsSources['readFile'],
): { file?: { path: string; text: string }; warnings: string[] } {
  const named = env['DROVER_CONFIG'];
  if (!named && !env['HOME']) return { warnings: [] };
  const path = expandHome(named || '~/.config/drover/config.yaml', env['HOME']);
  try {
    return { file: { path, text: readFile(path) }, warnings: [] };
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ENOENT') {
      throw new DroverError('INVALID_ARGUMENT', `The config file ${path} cannot be read`, {
        hint: 'Check its permissions, or name another one by DROVER_CONFIG.',
        cause: error,
      });
    }
    const warning = `DROVER_CONFIG names ${path}, which does not exist; the defaults are used`;
    return { warnings: named ? [warning] : [] };
  }
}

function resolvePaths(settings: Settings, home: string | undefined): Settings {
  const dir = expandHome(settings.data.dir, home);
  const dataDir = settings.agent.dataDir
    ? expandHome(settings.agent.dataDir, home)
    : `${dir}/agent`;
  const folder = settings.blobs.folder ? expandHome(settings.blobs.folder, home) : `${dir}/blobs`;
  const blobs = { ...settings.blobs, folder };
  const { cacheFile } = settings.gateway;
  const gateway = {
    ...settings.gateway,
    cacheFile: cacheFile ? expandHome(cacheFile, home) : `${dir}/gateway-cache.db`,
  };
  const named = settings.agent.cache.folder;
  const cache = {
    ...settings.agent.cache,
    folder: named ? expandHome(named, home) : `${dataDir}/cache`,
  };
  const policyFile = { file: expandHome(settings.policy.file, home) };
  const installFolder = expandHome(settings.server.installFolder, home);
  const server = { ...settings.server, installFolder };
  const training = { templates: expandHome(settings.training.templates, home) };
  const agent = { ...settings.agent, dataDir, cache };
  const paths = { data: { dir }, server, gateway, blobs, policy: policyFile, training, agent };
  return { ...settings, ...paths };
}

function expandHome(path: string, home: string | undefined): string {
  if (path !== '~' && !path.startsWith('~/')) return path;
  if (home) return home + path.slice(1);
  throw new DroverError(
    'INVALID_ARGUMENT',
    `${path} is below the home folder, and HOME is not set`,
    {
      hint: 'Set HOME, or give the path in full (DROVER_DATA=/var/lib/drover).',
    },
  );
}
