/** Errors as a person reads them: a code, a sentence and what to try; as JSON for machines. */
import { DroverError } from '../lib/errors.ts';
import { ApiError, ConnectionError } from '../protocol/client.ts';
import { UNTRUSTED_HINT } from '../protocol/untrusted.ts';
import { UsageError } from './args.ts';
import { colours, OutputClosed, type CliIo } from './io.ts';
import { printable } from './table.ts';

interface ErrorReport {
  code: string;
  message: string;
  /** Each thing that is wrong, where there are several. */
  violations?: string[];
  try?: string | undefined;
  requestId?: string | undefined;
}

/** Never throws: an error that cannot be written has nobody to read it, the exit code is left. */
export async function reportError(
  io: CliIo,
  error: unknown,
  options: { command: string; json: boolean },
): Promise<void> {
  const report = describeError(error, options.command);
  const text = options.json ? JSON.stringify({ error: report }) : errorText(io, report);
  try {
    await io.stderr.write(`${text}\n`);
  } catch (failure) {
    if (!(failure instanceof OutputClosed)) throw failure;
  }
}

function errorText(io: CliIo, report: ErrorReport): string {
  const paint = colours(io, io.stderr);
  const lines = [`${paint.red('error')} ${report.code}: ${printable(report.message)}`];
  for (const violation of report.violations ?? []) lines.push(`  ${printable(violation)}`);
  if (report.requestId) lines.push(`  request ${printable(report.requestId)}`);
  if (report.try) lines.push(`try: ${printable(report.try)}`);
  return lines.join('\n');
}

function describeError(error: unknown, command: string): ErrorReport {
  if (error instanceof UsageError) {
    const help = command ? `drover ${command} --help` : 'drover help';
    return { code: 'USAGE', message: error.message, try: error.hint ?? help };
  }
  if (error instanceof ConnectionError) return describeConnection(error);
  if (error instanceof ApiError) return describeApi(error);
  if (error instanceof DroverError) {
    const { code, message, hint } = error;
    // Our own words may be several lines; what a server sent is one.
    const [first = '', ...more] = message.split('\n').map((line) => line.trim());
    const violations = more.length > 0 ? { violations: more } : {};
    return { code, message: first, ...violations, try: hint };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { code: 'INTERNAL', message, try: 'run it again; if it stays, report it with this line' };
}

function describeConnection(error: ConnectionError): ErrorReport {
  if (error.untrusted) {
    return { code: 'UNTRUSTED_SERVER', message: error.message, try: UNTRUSTED_HINT };
  }
  return {
    code: error.refused ? 'CONNECTION_REFUSED' : 'CONNECTION_LOST',
    message: error.message,
    try: error.refused
      ? '`make up` starts a server here; DROVER_URL or `drover login URL` names another'
      : 'run it again; `drover jobs` shows what was accepted',
  };
}

function describeApi(error: ApiError): ErrorReport {
  const report: ErrorReport = { code: error.code, message: error.message, try: error.hint };
  if (error.status === 401) report.try = '`drover login URL`, or set DROVER_TOKEN';
  if (error.status >= 500) report.requestId = error.requestId;
  if (error.violations.length > 1) {
    report.violations = error.violations.map(({ path, message }) => `${path}: ${message}`);
  }
  return report;
}
