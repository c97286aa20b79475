/** How a role is run: its flags and settings are read, what it cannot go on with is told. */
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { readFileSync } from 'node:fs';
import { DroverError } from '../lib/errors.ts';
import { loadSettings, type Settings } from '../model/settings.ts';
import { tellFailure } from './failure.ts';

export interface RoleArguments {
  settings: Settings;
  positionals: string[];
  flags: Record<string, string | boolean | string[] | undefined>;
}

export interface Role {
  usage: string;
  /** Flags that are settings: their names and the settings they set. */
  settings: Record<string, string>;
  options: NonNullable<ParseArgsConfig['options']>;
  run: (args: RoleArguments) => Promise<number>;
}

/** Resolves with the exit code when the role has ended. */
export async function runRole(name: string, role: Role, args: string[]): Promise<number> {
  try {
    if (args.includes('--help') || args.includes('-h')) {
      process.stdout.write(`usage: ${role.usage}\n`);
      return 0;
    }
    const parsed = parse(role, args);
    const { settings, warnings } = loadSettings({
      env: process.env,
      argvOverrides: overrides(role, parsed.flags),
      readFile: (path) => readFileSync(path, 'utf8'),
    });
    // Under `drover up` these were told already.
    const told = process.send ? [] : warnings;
    for (const warning of told) process.stderr.write(`warning: ${warning}\n`);
    return await role.run({ settings, ...parsed });
  } catch (error) {
    await tellFailure(name, error);
    return error instanceof DroverError && error.code === 'INVALID_ARGUMENT' ? 2 : 1;
  }
}

function parse(role: Role, args: string[]): Omit<RoleArguments, 'settings'> {
  const options = { ...role.options };
  for (const flag of Object.keys(role.settings)) options[flag] = { type: 'string' };
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    return { flags: values as RoleArguments['flags'], positionals };
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new DroverError('INVALID_ARGUMENT', detail, { hint: role.usage, cause });
  }
}

function overrides(role: Role, flags: RoleArguments['flags']): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const [flag, setting] of Object.entries(role.settings)) {
    const value = flags[flag];
    if (value !== undefined) given[setting] = value;
  }
  return given;
}
