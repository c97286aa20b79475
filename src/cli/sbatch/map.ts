/** From what sbatch was told to a job as a file would describe it, and what was lost on the way. */
import path from 'node:path';
import type { Notice } from '../../model/jobParts.ts';
import { UsageError } from '../args.ts';
import { parseDuration } from '../durations.ts';
import type { Environment } from '../environment.ts';
import type { JobDraft } from '../jobDraft.ts';
import { readLayout, type Layout } from './layout.ts';
import { mapWhere } from './mapWhere.ts';
import { runtimeVariables, START } from './runtime.ts';
import type { Settings } from './settings.ts';
import { createSheet, type Sheet, type Unmapped } from './sheet.ts';
import type { SiteTable } from './table.ts';
import { slurmVariables, type SubmittedFrom } from './variables.ts';

export interface SbatchRequest extends SubmittedFrom {
  settings: Settings;
  script: string;
  /** The script's file name: the job's name unless --job-name says otherwise. */
  name: string;
  args: string[];
  /** As for `drover run`: a relative one goes along. Undefined: the worker has the same folders. */
  workdir: string | undefined;
  env: Environment;
  table: SiteTable;
}

export interface Mapped {
  /** Keys of a job file: `drover submit` takes it. */
  draft: JobDraft;
  unmapped: Unmapped[];
  /** Waits for all earlier jobs of its name, which only a server knows. */
  singleton: boolean;
}

/** Slurm's KillWait: so long a job has between TERM and KILL. */
const GRACE_MS = 30_000;
/** Of batch.sh, when the script has called `scontrol requeue`. */
const REQUEUE_EXIT_CODE = 85;
/** Looked at by the command, no part of the job. */
const ABOUT_SUBMITTING =
  'wait parsable test-only quiet verbose help usage version wrap ignore-pbs kill-on-invalid-dep';

export function mapSbatch(request: SbatchRequest): Mapped {
  const sheet = createSheet(request.settings);
  for (const name of ABOUT_SUBMITTING.split(' ')) sheet.take(name);
  const layout = readLayout(sheet);
  const name = sheet.take('job-name') || request.name;
  const draft: JobDraft = {
    name,
    command: ['/bin/sh', '-c', START, request.name, ...request.args],
    workdir: request.workdir ?? path.resolve(request.cwd, sheet.take('chdir') ?? '.'),
    cpus: layout.cpusPerNode,
  };
  if (layout.memoryMb !== undefined) draft['mem'] = `${layout.memoryMb}M`;
  if (layout.gpus !== undefined) draft['gpus'] = layout.gpus;
  mapShape(sheet, layout, draft);
  const limitMs = mapTime(sheet, draft);
  const { singleton } = mapWhere(sheet, request.table, draft);
  mapRules(sheet, request.script, request.table.mail, draft);
  const goesAlong = !path.isAbsolute(draft['workdir'] as string);
  const comment = sheet.take('comment');
  if (comment) draft['labels'] = { comment };
  draft['graceMs'] = GRACE_MS;
  draft['env'] = {
    ...readExports(sheet, request.env),
    ...slurmVariables(sheet, layout, name, { ...request, cwd: goesAlong ? '' : request.cwd }),
    ...names(sheet),
    ...files(sheet),
    ...readSignal(sheet, limitMs),
    ...(limitMs > 0 && { DROVER_SBATCH_LIMIT: String(Math.ceil(limitMs / 1000)) }),
    DROVER_SBATCH_SCRIPT: request.script,
    ...runtimeVariables(layout.nodes > 1),
  };
  return { draft, unmapped: sheet.unmapped(), singleton };
}

function mapShape(sheet: Sheet, { nodes }: Layout, draft: JobDraft): void {
  const array = sheet.take('array');
  if (array !== undefined && nodes > 1) {
    throw new UsageError(
      `${sheet.label('array')}: an array of jobs over ${nodes} nodes has no equivalent`,
      'submit one job per index: for i in …; do drover sbatch --export=I=$i …; done',
    );
  }
  if (array !== undefined) draft['array'] = array;
  if (nodes > 1) {
    draft['gang'] = nodes;
    // One where the nodes meet, one for the script's own MASTER_PORT.
    draft['ports'] = 2;
  }
}

function mapTime(sheet: Sheet, draft: JobDraft): number {
  const text = sheet.take('time');
  if (text === undefined || /^(unlimited|infinite|-1|0)$/i.test(text)) return 0;
  const limitMs = parseDuration(text, sheet.label('time'));
  draft['time'] = text;
  return limitMs;
}

/** Drover queues what a lost machine interrupted again by itself, unless told otherwise. */
function mapRules(sheet: Sheet, script: string, channel: string, draft: JobDraft): void {
  sheet.take('requeue');
  const once = sheet.take('no-requeue') !== undefined;
  if (once) draft['maxInterruptions'] = 0;
  const asks = !once && /\bscontrol\s+requeue\b/.test(script);
  const notify = channel === '' ? [] : noticesOf(sheet, channel);
  if (!asks && notify.length === 0) return;
  draft['rules'] = {
    ...(asks && { requeueExitCode: REQUEUE_EXIT_CODE }),
    ...(notify.length > 0 && { notify }),
  };
}

const NOTICES_OF: Record<string, Notice[]> = {
  BEGIN: ['started'],
  END: ['done'],
  FAIL: ['failed'],
  INVALID_DEPEND: ['failed'],
  TIME_LIMIT: ['failed'],
  REQUEUE: ['interrupted'],
  ALL: ['started', 'done', 'failed', 'interrupted'],
  NONE: [],
};

/** Who reads the channel is set on the server, so that --mail-user goes with it. */
function noticesOf(sheet: Sheet, channel: string): { to: string; on: Notice[] }[] {
  const text = sheet.take('mail-type');
  if (text === undefined) return [];
  sheet.take('mail-user');
  const on = new Set<Notice>();
  for (const type of text.split(',')) {
    const notices = NOTICES_OF[type.trim().toUpperCase()];
    if (!notices) sheet.leave('mail-type', 'mapped are BEGIN, END, FAIL, REQUEUE, ALL', type);
    for (const notice of notices ?? []) on.add(notice);
  }
  return on.size > 0 ? [{ to: channel, on: [...on] }] : [];
}

/** What sites call things is kept for scripts that print it. */
function names(sheet: Sheet): Record<string, string> {
  const env: Record<string, string> = {};
  const kept = { partition: 'SLURM_JOB_PARTITION', qos: 'SLURM_JOB_QOS' };
  for (const [option, variable] of Object.entries(kept)) {
    if (sheet.has(option)) env[variable] = sheet.take(option)!;
  }
  return env;
}

function files(sheet: Sheet): Record<string, string> {
  const env: Record<string, string> = {};
  for (const option of ['output', 'error', 'input', 'open-mode']) {
    const value = sheet.take(option);
    const variable = `DROVER_SBATCH_${option.toUpperCase().replace('-', '_')}`;
    if (value !== undefined && value !== 'none') env[variable] = value;
  }
  const mode = env['DROVER_SBATCH_OPEN_MODE'];
  if (mode?.startsWith('a')) env['DROVER_SBATCH_OPEN_MODE'] = 'append';
  return env;
}

/** [{R|B}:]SIGNAL[@SECONDS], by number or name. */
function readSignal(sheet: Sheet, limitMs: number): Record<string, string> {
  const text = sheet.take('signal');
  if (text === undefined) return {};
  const match = /^(?:([RB]{1,2}):)?(?:SIG)?([A-Z]+\d?|\d{1,2})(?:@(\d{1,5}))?$/i.exec(text);
  if (!match) {
    const hint = 'write USR1@60 or B:USR1@60';
    throw new UsageError(`${sheet.label('signal')} ${JSON.stringify(text)} is no signal`, hint);
  }
  if (limitMs === 0) {
    sheet.leave('signal', 'without --time there is no end to be told of');
    return {};
  }
  const [, to = '', name, seconds = '60'] = match;
  const afterSeconds = Math.max(1, Math.ceil(limitMs / 1000) - Number(seconds));
  return {
    DROVER_SBATCH_SIGNAL: name!.toUpperCase(),
    DROVER_SBATCH_SIGNAL_TO: /b/i.test(to) ? 'batch' : 'steps',
    DROVER_SBATCH_SIGNAL_AFTER: String(afterSeconds),
  };
}

/**
 * Only what is named: the shell one submits from holds tokens and paths that are nothing to a
 * machine elsewhere, and a job is kept in the database.
 */
function readExports(sheet: Sheet, env: Environment): Record<string, string> {
  const text = sheet.take('export');
  const exported: Record<string, string> = {};
  for (const entry of (text ?? '').split(',').filter((part) => part !== '')) {
    const equals = entry.indexOf('=');
    const name = equals < 0 ? entry : entry.slice(0, equals);
    const value = equals < 0 ? env[name] : entry.slice(equals + 1);
    if (/^(NONE|NIL)$/.test(entry)) continue;
    if (entry === 'ALL') {
      sheet.leave('export', 'this shell is not copied; name variables: --export=A,B=2', 'ALL');
    } else if (value === undefined) {
      sheet.leave('export', 'it is not set here', name);
    } else {
      exported[name] = value;
    }
  }
  return exported;
}
