/** Reads a command's arguments by its table of options; a wrong one gets the nearest named. */
import { nearest } from '../lib/nearest.ts';

export interface Option {
  kind: 'flag' | 'text' | 'list';
  help: string;
  short?: string;
  alias?: string;
  /** How the value is called in the help. */
  value?: string;
}

export type OptionTable = Record<string, Option>;

export type OptionValues<Table extends OptionTable> = {
  [Name in keyof Table]: Table[Name]['kind'] extends 'flag'
    ? boolean
    : Table[Name]['kind'] extends 'list'
      ? string[]
      : string | undefined;
};

export interface ParsedArgs<Table extends OptionTable> {
  options: OptionValues<Table>;
  positionals: string[];
  /** What stood after `--`; undefined when there was none. */
  rest: string[] | undefined;
}

/** The command line is wrong: exit code 2 and a hint. */
export class UsageError extends Error {
  readonly hint: string | undefined;
  constructor(message: string, hint?: string) {
    super(message);
    this.name = 'UsageError';
    this.hint = hint;
  }
}

export function parseArgs<Table extends OptionTable>(
  table: Table,
  args: string[],
): ParsedArgs<Table> {
  const values: Record<string, boolean | string | string[] | undefined> = {};
  for (const [name, option] of Object.entries(table)) {
    values[name] = option.kind === 'flag' ? false : option.kind === 'list' ? [] : undefined;
  }
  const positionals: string[] = [];
  const words = [...args];
  let rest: string[] | undefined;
  while (words.length > 0) {
    const word = words.shift()!;
    if (word === '--') {
      rest = words.splice(0);
    } else if (word.startsWith('-') && word !== '-') {
      setOption(table, values, word, words);
    } else {
      positionals.push(word);
    }
  }
  return { options: values as OptionValues<Table>, positionals, rest };
}

function setOption(
  table: OptionTable,
  values: Record<string, boolean | string | string[] | undefined>,
  word: string,
  words: string[],
): void {
  const { typed, inline } = splitWord(word);
  const name = findName(table, typed);
  const option = table[name]!;
  if (option.kind === 'flag') {
    if (inline !== undefined) throw new UsageError(`${typed} takes no value`);
    values[name] = true;
    return;
  }
  const value = inline ?? takeValue(typed, words);
  if (option.kind === 'list') {
    (values[name] as string[]).push(value);
    return;
  }
  if (values[name] !== undefined) throw new UsageError(`${typed} is given twice`);
  values[name] = value;
}

/** `--name=value`, `--name value`, `-nvalue` and `-n value`. */
function splitWord(word: string): { typed: string; inline: string | undefined } {
  if (!word.startsWith('--')) {
    const inline = word.length > 2 ? word.slice(2) : undefined;
    return { typed: word.slice(0, 2), inline };
  }
  const equals = word.indexOf('=');
  if (equals < 0) return { typed: word, inline: undefined };
  return { typed: word.slice(0, equals), inline: word.slice(equals + 1) };
}

function findName(table: OptionTable, typed: string): string {
  for (const [name, option] of Object.entries(table)) {
    if (typed === `--${name}` || typed === `--${option.alias}` || typed === `-${option.short}`) {
      return name;
    }
  }
  const close = typed.startsWith('--') ? nearest(typed.slice(2), Object.keys(table)) : undefined;
  throw new UsageError(`unknown option ${typed}`, close && `did you mean --${close}?`);
}

function takeValue(typed: string, words: string[]): string {
  const value = words[0];
  // A word that looks like an option is more often a forgotten value than a value.
  if (value === undefined || (value.startsWith('-') && value !== '-')) {
    const form = typed.startsWith('--') ? `${typed}=VALUE` : `${typed} VALUE`;
    throw new UsageError(`${typed} needs a value`, `write ${form}`);
  }
  words.shift();
  return value;
}

export function wholeNumber(text: string, what: string, least = 0): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least)) {
    throw new UsageError(`${what} ${JSON.stringify(text)} is not a whole number from ${least} up`);
  }
  return value;
}

/** One of a few words; the nearest is named where it is none of them. */
export function oneOf<Value extends string>(
  text: string,
  values: readonly Value[],
  what: string,
): Value {
  const found = values.find((value) => value === text);
  if (found !== undefined) return found;
  const close = nearest(text, values);
  const hint = close ? `did you mean ${close}?` : values.join(', ');
  throw new UsageError(`${what} ${JSON.stringify(text)} is not known`, hint);
}
