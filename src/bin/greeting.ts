/** What `drover up` says when it is up and when it stops. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { grpcExposures, httpExposures } from '../model/listenerSettings.ts';
import type { Settings } from '../model/settings.ts';
import type { Connection } from './connection.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** The commands work as they stand in another terminal that is in this directory. */
export function greeting({ url, token }: Connection, settings: Settings, logPath: string): string {
  const { dir } = settings.data;
  const here = (file: string): string => {
    const way = relative(process.cwd(), join(CHECKOUT, file));
    return shellWord(way.startsWith('..') ? join(CHECKOUT, file) : way);
  };
  const word = here('drover');
  const drover = `${variables(url, dir)}${word.includes('/') ? word : `./${word}`}`;
  return `
Drover is up at ${url}
  admin token   ${token}
  data          ${dir}
  log           ${logPath}
${insecureLines(settings)}
Try, in another terminal:
  ${drover} run -- python3 -c 'print("hi")'
  ${drover} submit -f ${here('examples/array.yaml')}
  ${drover} workers

Ctrl-C stops it.
`;
}

function insecureLines(settings: Settings): string {
  const open = [...httpExposures(settings), ...grpcExposures(settings)];
  return open.map((exposure) => `  INSECURE      ${exposure} (docs/tls.md)\n`).join('');
}

/** What another terminal must be told to find this server; nothing where the defaults do. */
function variables(url: string, dir: string): string {
  const home = process.env['HOME'] || homedir();
  const config = process.env['XDG_CONFIG_HOME'] || join(home, '.config');
  const words: string[] = [];
  if (dir !== join(home, '.drover')) words.push(`DROVER_DATA=${shellWord(dir)}`);
  // After a `drover login` elsewhere, that server comes first.
  if (existsSync(join(config, 'drover', 'context.json'))) words.push(`DROVER_URL=${url}`);
  return words.map((word) => `${word} `).join('');
}

export function farewell(running: number | null, settings: Settings, now: Date): string {
  if (running === 0) return '\nStopping. Nothing is running.\n';
  const { attemptMs, killMarginMs } = settings.leases;
  const waitMs = attemptMs - killMarginMs;
  const until = new Date(now.getTime() + waitMs).toLocaleTimeString('en-GB');
  const how = `until ${until} (${(waitMs / 60_000).toFixed(1)} minutes)`;
  const later = 'A start before then adopts them; a later one runs them again.';
  if (running === null) {
    return `\nStopping. What runs goes on and waits for a restart ${how}.\n${later}\n`;
  }
  const who = running === 1 ? '1 running task goes on and waits' : null;
  const what = who ?? `${running} running tasks go on and wait`;
  return `\nStopping. ${what} for a restart ${how}.\n${later}\n`;
}

function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
