/** What sbatch was told: by the script, by SBATCH_ variables, and before both the command line. */
import { nearest } from '../../lib/nearest.ts';
import { UsageError } from '../args.ts';
import type { Environment } from '../environment.ts';
import { SBATCH_OPTIONS, type SbatchOption } from './options.ts';
import { scriptWords } from './words.ts';

export interface Setting {
  /** Empty where the option takes none. */
  value: string;
  /** For a person: `line 3`, `the command line`, `SBATCH_QOS`. */
  from: string;
}

export type Settings = Map<string, Setting>;

export interface CommandLine {
  settings: Settings;
  /** The script and its arguments, from the first word that is no option on. */
  rest: string[];
}

/** Options end where the script is named, as in sbatch: what follows is the script's own. */
export function readCommandLine(words: string[]): CommandLine {
  const settings: Settings = new Map();
  const rest = [...words];
  while (rest.length > 0 && rest[0]!.startsWith('-') && rest[0] !== '-') {
    const word = rest.shift()!;
    if (word === '--') break;
    readWord(settings, word, () => rest.shift(), 'the command line');
  }
  return { settings, rest };
}

const OWN = new Set(['--dry-run', '--strict', '--json', '--url', '--workdir', '--help', '-h']);
const OWN_WITH_VALUE = new Set(['--url', '--workdir']);

/** Drover's own flags first, then `--` and all that is sbatch's and the script's. */
export function arrange(words: string[]): string[] {
  const own: string[] = [];
  const others: string[] = [];
  const left = [...words];
  const next = (list: string[]): string | undefined => {
    const word = left.shift();
    if (word !== undefined) list.push(word);
    return word;
  };
  while (left.length > 0 && left[0]!.startsWith('-') && left[0] !== '-' && left[0] !== '--') {
    const isOwn = OWN.has(left[0]!.split('=')[0]!);
    const word = next(isOwn ? own : others)!;
    if (!isOwn) readWord(new Map(), word, () => next(others), 'the command line');
    else if (OWN_WITH_VALUE.has(word)) next(own);
  }
  return [...own, '--', ...others, ...left];
}

export function readScript(script: string, file: string): Settings {
  const settings: Settings = new Map();
  const words = scriptWords(script, file);
  while (words.length > 0) {
    const { text, line } = words.shift()!;
    const from = `line ${line}`;
    if (text === 'hetjob') {
      throw new UsageError(
        `${file} ${from}: a heterogeneous job has no equivalent`,
        'split it into jobs, or ask for the larger part everywhere',
      );
    }
    if (!text.startsWith('-') || text === '-') {
      throw new UsageError(
        `${file} ${from}: ${JSON.stringify(text)} is no option`,
        'a value goes right after its option',
      );
    }
    readWord(settings, text, () => words.shift()?.text, from);
  }
  return settings;
}

export function readVariables(env: Environment): Settings {
  const settings: Settings = new Map();
  for (const [name, { variable, value }] of Object.entries(SBATCH_OPTIONS)) {
    const text = variable && env[variable];
    if (text === undefined || text === '') continue;
    settings.set(name, { value: value === 'no' ? '' : text, from: variable! });
  }
  return settings;
}

/** Later ones win. `--requeue` and `--no-requeue` are one question. */
export function mergeSettings(...all: Settings[]): Settings {
  const merged: Settings = new Map();
  for (const settings of all) {
    for (const [name, setting] of settings) {
      if (name === 'requeue') merged.delete('no-requeue');
      if (name === 'no-requeue') merged.delete('requeue');
      merged.set(name, setting);
    }
  }
  return merged;
}

function readWord(
  settings: Settings,
  word: string,
  next: () => string | undefined,
  from: string,
): void {
  if (word.startsWith('--')) readLong(settings, word, next, from);
  else readShort(settings, word.slice(1), next, from);
}

function readLong(
  settings: Settings,
  word: string,
  next: () => string | undefined,
  from: string,
): void {
  const equals = word.indexOf('=');
  const typed = word.slice(2, equals < 0 ? undefined : equals);
  const name = longName(typed, from);
  const inline = equals < 0 ? undefined : word.slice(equals + 1);
  const { value } = SBATCH_OPTIONS[name]!;
  if (value === 'no' && inline !== undefined) {
    throw new UsageError(`${from}: --${name} takes no value`);
  }
  const text = inline ?? (value === 'yes' ? needed(next(), `--${name}`, from) : '');
  settings.set(name, { value: text, from });
}

/** `-c4`, `-c 4`, and flags in one word: `-HQ`. */
function readShort(
  settings: Settings,
  letters: string,
  next: () => string | undefined,
  from: string,
): void {
  const letter = letters[0]!;
  const name = shortName(letter);
  if (name === undefined) throw new UsageError(`${from}: unknown option -${letter}`);
  const { value } = SBATCH_OPTIONS[name]!;
  const inline = letters.slice(1);
  if (value === 'no' || value === 'maybe') {
    settings.set(name, { value: value === 'maybe' ? inline : '', from });
    if (value === 'no' && inline !== '') readShort(settings, inline, next, from);
    return;
  }
  settings.set(name, { value: inline || needed(next(), `-${letter}`, from), from });
}

function needed(value: string | undefined, option: string, from: string): string {
  if (value !== undefined) return value;
  throw new UsageError(`${from}: ${option} needs a value`);
}

/** Whole, or so much of it that it can be no other, as getopt takes it. */
function longName(typed: string, from: string): string {
  const names = Object.keys(SBATCH_OPTIONS);
  if (names.includes(typed)) return typed;
  const begun = typed === '' ? [] : names.filter((name) => name.startsWith(typed));
  if (begun.length === 1) return begun[0]!;
  const close = begun.length > 1 ? begun.join(', --') : nearest(typed, names);
  throw new UsageError(`${from}: unknown option --${typed}`, close && `did you mean --${close}?`);
}

function shortName(letter: string): string | undefined {
  const isIt = ([, { short }]: [string, SbatchOption]): boolean => short === letter;
  return Object.entries(SBATCH_OPTIONS).find(isIt)?.[0];
}
