/** What a command is, and what all have in common: --help, --json, --url, errors and exit codes. */
import type { BlobClientOptions } from '../protocol/blobClient.ts';
import { createClient, type DroverClient } from '../protocol/client.ts';
import { useClientTlsFiles } from '../protocol/clientTls.ts';
import { parseArgs, UsageError, type OptionTable, type ParsedArgs } from './args.ts';
import { findConnection, type Connection } from './connection.ts';
import { reportError } from './errors.ts';
import { EXIT } from './exitCodes.ts';
import { commandHelp } from './helpText.ts';
import { OutputClosed, type CliIo } from './io.ts';
import { clientVersion } from './versionNumber.ts';

export interface Command {
  name: string;
  summary: string;
  /** The lines of a call, without `drover`. */
  usage: string[];
  /** With those that all commands take; `drover completion` reads them. */
  options: OptionTable;
  run(args: string[], io: CliIo): Promise<number>;
}

export interface CommandContext {
  io: CliIo;
  json: boolean;
  connection(): Connection;
  client(): DroverClient;
  /** How blobs are sent and fetched. */
  blobs(): BlobClientOptions;
  /** One document on one line. */
  printJson(value: unknown): Promise<void>;
  print(text: string): Promise<void>;
  /** A word to the person at the terminal, never part of the output. */
  notice(text: string): Promise<void>;
}

export interface CommandDefinition<Table extends OptionTable> {
  name: string;
  summary: string;
  usage: string[];
  options: Table;
  /** More help: a paragraph, or examples. */
  details?: string;
  /** Set where the exit code is a job's: Drover's own failures must not look like one. */
  failureCode?: number;
  /** For options that are not ours: puts them behind a `--`. */
  arrange?(args: string[]): string[];
  run(parsed: ParsedArgs<Table & typeof COMMON>, context: CommandContext): Promise<number>;
}

const COMMON = {
  json: { kind: 'flag', help: 'machine-readable output' },
  url: { kind: 'text', value: 'URL', help: 'the server (else DROVER_URL, login, or drover up)' },
  'ca-file': { kind: 'text', value: 'FILE', help: 'trust this authority too (or DROVER_CA_FILE)' },
  help: { kind: 'flag', short: 'h', help: 'this text' },
} as const satisfies OptionTable;

export function defineCommand<const Table extends OptionTable>(
  definition: CommandDefinition<Table>,
): Command {
  const table = { ...definition.options, ...COMMON };
  const { name, summary, usage } = definition;
  return {
    name,
    summary,
    usage,
    options: table,
    async run(typed, io) {
      let own = beforeDashes(typed);
      try {
        const args = definition.arrange?.(typed) ?? typed;
        own = beforeDashes(args);
        if (own.includes('--help') || own.includes('-h')) {
          await io.stdout.write(commandHelp({ ...definition, options: table }));
          return EXIT.ok;
        }
        const parsed = parseArgs(table, args);
        const url = parsed.options.url as string | undefined;
        const caFile = parsed.options['ca-file'] as string | undefined;
        const context = createContext(io, own.includes('--json'), { url, caFile });
        return await definition.run(parsed, context);
      } catch (error) {
        if (error instanceof OutputClosed) return EXIT.brokenPipe;
        await reportError(io, error, { command: name, json: own.includes('--json') });
        if (definition.failureCode !== undefined) return definition.failureCode;
        return error instanceof UsageError ? EXIT.usage : EXIT.failed;
      }
    },
  };
}

function beforeDashes(args: string[]): string[] {
  return args.includes('--') ? args.slice(0, args.indexOf('--')) : args;
}

function createContext(
  io: CliIo,
  json: boolean,
  flags: Parameters<typeof findConnection>[1],
): CommandContext {
  let found: Connection | undefined;
  const connection = (): Connection => {
    if (found === undefined) {
      found = findConnection(io.env, flags);
      useClientTlsFiles(found.tls);
    }
    return found;
  };
  const http = (): BlobClientOptions => {
    const { url, token } = connection();
    return { url, token, userAgent: `drover-cli/${clientVersion()}` };
  };
  return {
    io,
    json,
    connection,
    client: () => createClient(http()),
    blobs: http,
    printJson: (value) => io.stdout.write(`${JSON.stringify(value)}\n`),
    print: (text) => io.stdout.write(`${text}\n`),
    notice: (text) => io.stderr.write(`drover: ${text}\n`),
  };
}

/** The arguments by name; more, fewer or a stray `--` are refused. */
export function takePositionals(
  parsed: { positionals: string[]; rest: string[] | undefined },
  names: string[],
): string[] {
  if (parsed.rest !== undefined) throw new UsageError('-- has no meaning here');
  const { positionals } = parsed;
  const missing = names[positionals.length];
  if (missing) throw new UsageError(`${missing} is missing`);
  if (positionals.length > names.length) {
    throw new UsageError(`unexpected argument ${JSON.stringify(positionals[names.length])}`);
  }
  return positionals;
}
