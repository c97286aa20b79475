/**
 * A site's own check: a command whose exit code or lines say whether the machine is fit for work.
 */
import type { Clock } from '../../lib/clock.ts';
import { runTool } from '../environments/tool.ts';
import type { Check, Finding } from './check.ts';

interface CommandOptions {
  /** For a shell. */
  command: string;
  limitMs: number;
  env: Record<string, string>;
  clock: Clock;
}

/** So long it may take to stop once it is told to. */
const STOP_MS = 15_000;
/** Lines of it that count. */
export const COMMAND_LINES = 20;

export function createCommandCheck({ command, limitMs, env, clock }: CommandOptions): Check {
  return {
    name: 'command',
    around: 'none',
    limitMs: limitMs + STOP_MS,
    async look() {
      const args = ['-c', command];
      const end = await runTool({ program: '/bin/sh', args, env, clock, limitMs });
      const said = end.stdout.split('\n').flatMap(lineFinding).slice(0, COMMAND_LINES);
      const isTold = said.some(({ severity }) => severity === 'drain');
      if (end.code === 0 || isTold) return said;
      // Without a line of its own the last it wrote is the best there is.
      const how = end.code === null ? 'was stopped' : `ended with exit code ${end.code}`;
      const last = end.lastLines.at(-1);
      const message = `${command} ${how}${last === undefined ? '' : `: ${last}`}`;
      return [...said, finding('exit', 'drain', message)];
    },
  };
}

/** `DRAIN scratch is not mounted`, `WARN fan 3 is slow`. */
function lineFinding(line: string): Finding[] {
  const match = /^\s*(DRAIN|WARN)\b[:\s]*(.*?)\s*$/.exec(line);
  if (!match) return [];
  const severity = match[1] === 'DRAIN' ? 'drain' : 'warn';
  const message = match[2] || 'it did not say why';
  return [finding(message, severity, message)];
}

function finding(key: string, severity: Finding['severity'], message: string): Finding {
  return { check: 'command', key, severity, message, blames: 'everybody' };
}
