/**
 * Settings from a YAML file, the environment and the command line, checked by one zod schema of
 * sections with keys. Every complaint names the setting, where its value came from and what fits.
 */
import { z } from 'zod';
import { DroverError } from './errors.ts';
import { nearest } from './nearest.ts';
import { parseSettingsFile, parseValue, type FileValue } from './settingsFile.ts';

export interface ConfigSources<Schema extends z.ZodObject> {
  schema: Schema;
  /** `APP_` makes `server.port` the variable APP_SERVER_PORT. */
  prefix: string;
  env: Readonly<Record<string, string | undefined>>;
  /** Absent when there is no file. */
  file?: { path: string; text: string };
  /** From the command line, by setting: `{ 'server.port': '8080' }`. Undefined means not given. */
  overrides?: Readonly<Record<string, unknown>>;
  /** Short names of variables: `{ APP_DATA: 'data.dir' }`. The full name wins. */
  aliases?: Readonly<Record<string, string>>;
  /** Variables with the prefix that are not settings; a pattern each. */
  otherVariables?: readonly RegExp[];
  /** Says why a value may not stand in the file (a secret, say). */
  refuseInFile?: (setting: string, value: unknown) => string | undefined;
}

export interface LoadedConfig<Schema extends z.ZodObject> {
  config: z.output<Schema>;
  warnings: string[];
}

interface Given {
  value: unknown;
  /** `config.yaml:3`, `APP_SERVER_PORT`, `the command line`. */
  source: string;
}

/** File, then environment, then command line: the later wins. Throws with every problem at once. */
export function loadConfig<Schema extends z.ZodObject>(
  sources: ConfigSources<Schema>,
): LoadedConfig<Schema> {
  const leaves = settingsOf(sources.schema);
  const problems: string[] = [];
  const warnings: string[] = [];
  const given = new Map<string, Given>([
    ...fromFile(sources, leaves, problems),
    ...fromEnvironment(sources, leaves, problems, warnings),
    ...fromOverrides(sources, leaves, problems),
  ]);
  const parsed = sources.schema.safeParse(nest(given, sources.schema));
  if (!parsed.success) {
    for (const issue of parsed.error.issues) problems.push(complaint(issue, leaves, given));
  }
  if (!parsed.success || problems.length > 0) throw invalid([...new Set(problems)]);
  return { config: parsed.data, warnings };
}

function invalid(problems: string[]): DroverError {
  return new DroverError(
    'INVALID_ARGUMENT',
    `The settings do not fit:\n  ${problems.join('\n  ')}`,
    {
      hint: 'Correct the file or the variables named above and start again.',
    },
  );
}

/** Every setting of a schema, `section.key`, with the schema of its value. */
export function settingsOf(schema: z.ZodObject): Map<string, z.core.$ZodType> {
  const leaves = new Map<string, z.core.$ZodType>();
  for (const [section, keys] of Object.entries(schema.shape)) {
    const inner = unwrap(keys);
    if (!(inner instanceof z.ZodObject)) throw new Error(`${section} is not a section`);
    for (const [key, leaf] of Object.entries(inner.shape)) leaves.set(`${section}.${key}`, leaf);
  }
  return leaves;
}

/** `server.bodyLimitBytes` with `APP_` is APP_SERVER_BODY_LIMIT_BYTES. */
export function variableOf(prefix: string, setting: string): string {
  const words = setting.replace('.', '_').replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2');
  return prefix + words.toUpperCase();
}

function fromFile(
  { file, schema, refuseInFile }: ConfigSources<z.ZodObject>,
  leaves: Map<string, z.core.$ZodType>,
  problems: string[],
): Map<string, Given> {
  const given = new Map<string, Given>();
  if (!file) return given;
  const content = parseSettingsFile(file.path, file.text);
  problems.push(...content.problems);
  const known = Object.keys(schema.shape);
  for (const { name, source } of content.sections) {
    if (known.includes(name)) continue;
    problems.push(`${name} (${source}): there is no such section${meant(name, known)}`);
  }
  for (const found of content.values.filter(({ section }) => known.includes(section))) {
    const { section, key, value, source } = found;
    const setting = key === undefined ? section : `${section}.${key}`;
    const reason = fileProblem(found, leaves) ?? refuseInFile?.(setting, value);
    if (reason === undefined) given.set(setting, { value, source });
    else problems.push(`${setting} (${source}): ${reason}`);
  }
  return given;
}

function fileProblem(
  { section, key }: FileValue,
  leaves: Map<string, z.core.$ZodType>,
): string | undefined {
  if (key === undefined) return 'is a section: its settings are expected below it, indented';
  if (leaves.has(`${section}.${key}`)) return undefined;
  return `there is no such setting${meant(`${section}.${key}`, [...leaves.keys()])}`;
}

function fromEnvironment(
  { prefix, env, aliases = {}, otherVariables = [], schema }: ConfigSources<z.ZodObject>,
  leaves: Map<string, z.core.$ZodType>,
  problems: string[],
  warnings: string[],
): Map<string, Given> {
  const settings = new Map<string, string>(Object.entries(aliases));
  for (const setting of leaves.keys()) settings.set(variableOf(prefix, setting), setting);
  const sections = Object.keys(schema.shape).map((name) => `${variableOf(prefix, name)}_`);
  const given = new Map<string, Given>();
  // Aliases first, so that the full name overwrites them.
  const isAlias = (name: string): number => (Object.hasOwn(aliases, name) ? 0 : 1);
  const names = Object.keys(env).toSorted((a, b) => isAlias(a) - isAlias(b) || (a < b ? -1 : 1));
  for (const name of names) {
    const text = env[name];
    // Empty means unset: that is how service files and containers pass "no value".
    if (!name.startsWith(prefix) || text === undefined || text === '') continue;
    const setting = settings.get(name);
    if (setting !== undefined) {
      given.set(setting, { value: fromText(leaves.get(setting), text), source: name });
    } else if (!otherVariables.some((pattern) => pattern.test(name))) {
      const told = `${name}: there is no such setting${meant(name, [...settings.keys()])}`;
      // Outside every section it may be another program's.
      (sections.some((section) => name.startsWith(section)) ? problems : warnings).push(told);
    }
  }
  return given;
}

function fromOverrides(
  { overrides = {} }: ConfigSources<z.ZodObject>,
  leaves: Map<string, z.core.$ZodType>,
  problems: string[],
): Map<string, Given> {
  const given = new Map<string, Given>();
  for (const [setting, value] of Object.entries(overrides)) {
    if (value === undefined) continue;
    const leaf = leaves.get(setting);
    const parsed = typeof value === 'string' ? fromText(leaf, value) : value;
    if (leaf) given.set(setting, { value: parsed, source: 'the command line' });
    else problems.push(`${setting}: there is no such setting${meant(setting, [...leaves.keys()])}`);
  }
  return given;
}

/** Text where the setting is text; else what YAML reads in it, so that `8080` is a number. */
function fromText(leaf: z.core.$ZodType | undefined, text: string): unknown {
  const inner = leaf && unwrap(leaf);
  if (inner instanceof z.ZodString || inner instanceof z.ZodEnum) return text;
  return parseValue(text);
}

function nest(given: Map<string, Given>, schema: z.ZodObject): Record<string, unknown> {
  const config: Record<string, Record<string, unknown>> = {};
  for (const section of Object.keys(schema.shape)) config[section] = {};
  for (const [setting, { value }] of given) {
    const [section = '', key = ''] = setting.split('.');
    (config[section] ??= {})[key] = value;
  }
  return config;
}

function complaint(
  issue: z.core.$ZodIssue,
  leaves: Map<string, z.core.$ZodType>,
  given: Map<string, Given>,
): string {
  const setting = issue.path.slice(0, 2).join('.');
  const leaf = leaves.get(setting);
  const from = given.get(setting);
  const place = from ? `${setting} (${from.source})` : setting;
  const below = issue.path.slice(2).join('.');
  if (!leaf || issue.code === 'custom') return `${place}: ${issue.message}`;
  const expected = describe(leaf) + (below ? `; at ${below}: ${issue.message}` : '');
  return `${place}: expected ${expected}, not ${show(from?.value)}`;
}

/** What fits a setting, for a person. */
function describe(leaf: z.core.$ZodType): string {
  const schema = z.toJSONSchema(leaf, { io: 'input', unrepresentable: 'any' });
  if (schema.enum) return `one of ${schema.enum.join(', ')}`;
  if (schema.type === 'boolean') return 'true or false';
  if (schema.type === 'object') return 'names with values, as {name: value}';
  if (schema.type === 'array') return 'a list, as [a, b]';
  if (schema.type !== 'integer' && schema.type !== 'number') return 'text';
  const noun = schema.type === 'integer' ? 'a whole number' : 'a number';
  const { minimum, maximum = Number.MAX_SAFE_INTEGER } = schema;
  if (maximum < Number.MAX_SAFE_INTEGER) return `${noun} from ${minimum ?? 0} to ${maximum}`;
  return minimum === undefined ? noun : `${noun} of at least ${minimum}`;
}

const SHOWN_CHARACTERS = 60;

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

function meant(name: string, known: string[]): string {
  const guess = nearest(name, known);
  return guess === undefined ? '' : `; did you mean ${guess}?`;
}

/** The schema within defaults and the like. */
function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  let inner = schema;
  while (
    inner instanceof z.ZodDefault ||
    inner instanceof z.ZodPrefault ||
    inner instanceof z.ZodOptional ||
    inner instanceof z.ZodNullable
  ) {
    inner = inner.unwrap();
  }
  return inner;
}
