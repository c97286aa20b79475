/** Templates of batch scripts: found, rendered, and shown without what is secret. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import nunjucks from 'nunjucks';
import { quote } from '../remote/quote.ts';
import {
  agentText,
  environmentText,
  MASKED_TOKEN,
  startText,
  type AgentProgram,
} from './agentProgram.ts';
import { slurmTime, type Asked } from './options.ts';

/** What sbatch takes; it has a limit of its own on scripts, of 4 MiB unless set. */
const SCRIPT_BYTES = 4 * 1024 * 1024;
const BUILT_IN = fileURLToPath(new URL('../../../deploy/slurm/', import.meta.url));
const ENDING = '.sbatch.j2';
/** Stands for the text with the token while the template is rendered. */
const ENVIRONMENT = '@DROVER-ENVIRONMENT@';

export type Rendered =
  | { kind: 'rendered'; script: string; shown: string }
  /** A sentence for a person. */
  | { kind: 'failed'; reason: string };

export interface Rendering {
  asked: Asked;
  program: AgentProgram;
  clusterId: string;
  /** The whole command line, for whoever reads the script later. */
  options: readonly string[];
}

export function renderTemplate(rendering: Rendering): Rendered {
  const { settings } = rendering.asked;
  const failed = (reason: string): Rendered => ({
    kind: 'failed',
    reason: `the template ${settings.template} ${reason}`,
  });
  const file = templateFile(settings.template);
  let text: string;
  try {
    text = environmentOf(file).renderString(readFileSync(file, 'utf8'), variables(rendering));
  } catch (error) {
    return failed(`does not render: ${problemOf(error, settings.template)}`);
  }
  if (!text.startsWith('#!')) return failed('must begin with #! and an interpreter');
  if (!text.includes(ENVIRONMENT)) {
    return failed('starts no agent: it needs {{ start }}, or {{ environment }} and {{ agent }}');
  }
  const fill = (tokenOf: (token: string) => string): string =>
    text.replaceAll(ENVIRONMENT, () => environmentText(rendering.program, tokenOf));
  const script = fill((token) => token);
  if (Buffer.byteLength(script) > SCRIPT_BYTES) return failed(`is over ${SCRIPT_BYTES} bytes`);
  return {
    kind: 'rendered',
    script,
    shown: shownText(
      fill(() => MASKED_TOKEN),
      rendering,
    ),
  };
}

/** With the command line in it, where `#SBATCH` lines would be. */
function shownText(text: string, { options }: Rendering): string {
  const end = text.indexOf('\n') + 1;
  const command = options.map((option) => `#   ${quote(option)}\n`).join('');
  return `${text.slice(0, end)}# Submitted by: sbatch\n${command}${text.slice(end)}`;
}

/** docs/slurm.md lists them. */
function variables({ asked, program, clusterId, options }: Rendering): Record<string, unknown> {
  const { batch, settings, pool, jobName, account, timeMs, avoid, folder } = asked;
  return {
    cluster: clusterId,
    site: program.site,
    pool,
    batch: batch.id,
    name: jobName,
    title: batch.name,
    count: batch.intents.length,
    workers: batch.workers,
    url: program.connectorUrl || batch.agent.url,
    folder,
    partition: settings.partition,
    account,
    qos: settings.qos,
    constraint: settings.constraint,
    reservation: settings.reservation,
    time: timeMs > 0 ? slurmTime(timeMs) : '',
    minutes: Math.floor(timeMs / 60_000),
    noticeSeconds: Math.ceil(batch.noticeMs / 1000),
    exclude: avoid.join(','),
    options,
    environment: ENVIRONMENT,
    agent: agentText(program),
    start: startText(program, ENVIRONMENT),
  };
}

/** A misspelt variable is an error and not an empty word; parts beside the file can be included. */
function environmentOf(file: string): nunjucks.Environment {
  const loader = new nunjucks.FileSystemLoader(path.dirname(file), { noCache: true });
  const environment = new nunjucks.Environment(loader, {
    autoescape: false,
    throwOnUndefined: true,
  });
  environment.addFilter('quote', (value: unknown) => quote(String(value)));
  return environment;
}

function templateFile(template: string): string {
  return template.includes('/') ? path.resolve(template) : BUILT_IN + template + ENDING;
}

function problemOf(error: unknown, template: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT') return message.replaceAll(/\s+/g, ' ').trim();
  if (template.includes('/')) return 'there is no such file';
  return `there is none of that name; there are: ${builtIn().join(', ')}`;
}

function builtIn(): string[] {
  return readdirSync(BUILT_IN)
    .filter((name) => name.endsWith(ENDING))
    .map((name) => name.slice(0, -ENDING.length))
    .toSorted();
}
