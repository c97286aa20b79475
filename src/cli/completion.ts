/** drover completion: scripts for bash, zsh and fish that ask us what may come next. */
import { JOB_STATES, PRIORITIES } from '../model/job.ts';
import { TRUSTS } from '../model/placement.ts';
import type { OptionTable } from './args.ts';
import { oneOf } from './args.ts';
import { defineCommand, takePositionals, type Command, type CommandContext } from './command.ts';
import { COMPLETION_SCRIPTS, SHELLS } from './completionScripts.ts';
import { listContexts } from './contexts.ts';
import { EXIT } from './exitCodes.ts';
import { ROLES } from './help.ts';

/** What may stand there; the shell itself knows files. */
interface Choice {
  word: string;
  help?: string;
}
const FILES: Choice[] = [{ word: ':files' }];
const FOLDERS: Choice[] = [{ word: ':folders' }];
/** As many as a person would look through. */
const IDS = 50;

/** Values of options that are one of a few words. */
const VALUES: Record<string, readonly string[]> = {
  state: JOB_STATES.map((state) => state.toLowerCase()),
  priority: PRIORITIES,
  trust: TRUSTS,
  by: ['user', 'tenant', 'pool', 'day'],
};

export function createCompletion(commands: () => Command[]): Command {
  return defineCommand({
    name: 'completion',
    summary: 'Print a script that completes commands, options and job ids',
    usage: ['completion bash|zsh|fish'],
    options: {},
    details:
      'bash:  echo \'eval "$(drover completion bash)"\' >> ~/.bashrc\n' +
      'zsh:   drover completion zsh > "${fpath[1]}/_drover"\n' +
      'fish:  drover completion fish > ~/.config/fish/completions/drover.fish',
    async run(parsed, context) {
      if (parsed.positionals[0] === 'words') {
        return printChoices(commands(), parsed.rest ?? [], context);
      }
      const [shell] = takePositionals(parsed, [SHELLS.join('|')]);
      await context.io.stdout.write(COMPLETION_SCRIPTS[oneOf(shell!, SHELLS, 'shell')]);
      return EXIT.ok;
    },
  });
}

/** The last word is the one that is being typed. */
async function printChoices(
  commands: Command[],
  words: string[],
  context: CommandContext,
): Promise<number> {
  const typed = words.at(-1) ?? '';
  const choices = await choicesFor(commands, words, context);
  for (const { word, help } of choices) {
    if (!word.startsWith(typed) && !word.startsWith(':')) continue;
    await context.print(help ? `${word}\t${help}` : word);
  }
  return EXIT.ok;
}

async function choicesFor(
  commands: Command[],
  words: string[],
  context: CommandContext,
): Promise<Choice[]> {
  const roles = context.io.clientOnly ? [] : ROLES;
  const named = [...commands, ...roles].map(({ name, summary }) => ({ word: name, help: summary }));
  if (words.length <= 1) return named;
  const command = commands.find(({ name }) => name === words[0]);
  if (!command) return FILES;
  const before = words.slice(1, -1);
  if (before.includes('--')) return FILES;
  const previous = takesValue(command.options, before.at(-1));
  if (previous) return valueChoices(previous, command.options[previous]!.value ?? '', context);
  if (words.at(-1)!.startsWith('-')) return optionChoices(command.options, before);
  if (command.name === 'help') return named;
  return positionalChoices(command, positionalsOf(command.options, before), context);
}

/** The name of the option whose value comes next, if any. */
function takesValue(options: OptionTable, word: string | undefined): string | undefined {
  if (word === undefined) return undefined;
  return Object.keys(options).find((name) => {
    const { kind, short, alias } = options[name]!;
    return kind !== 'flag' && [`--${name}`, `-${short}`, `--${alias}`].includes(word);
  });
}

function optionChoices(options: OptionTable, before: string[]): Choice[] {
  return Object.entries(options)
    .filter(([name, { kind }]) => kind === 'list' || !before.includes(`--${name}`))
    .map(([name, { help }]) => ({ word: `--${name}`, help }));
}

function positionalsOf(options: OptionTable, before: string[]): string[] {
  return before.filter((word, at) => !word.startsWith('-') && !takesValue(options, before[at - 1]));
}

function valueChoices(name: string, value: string, context: CommandContext): Promise<Choice[]> {
  if (value.startsWith('JOB')) return jobChoices(context, false);
  if (value === 'FILE') return Promise.resolve(FILES);
  if (value === 'DIR') return Promise.resolve(FOLDERS);
  return Promise.resolve((VALUES[name] ?? []).map((word) => ({ word })));
}

/** Read from the lines of its usage: verbs in small letters, ID for a job, NAME for a context. */
async function positionalChoices(
  command: Command,
  before: string[],
  context: CommandContext,
): Promise<Choice[]> {
  const lines = command.usage.map((line) => line.split(' ').slice(1));
  const verbs = lines.flatMap(([word = '']) => word.replace(/[[\]]/g, '').split('|'));
  const known = verbs.filter((word) => /^[a-z]+$/.test(word));
  if (known.length > 0 && before.length === 0) return known.map((word) => ({ word }));
  if (command.name === 'context' && before.length === 1) {
    return listContexts(context.io.env).map(({ name, url }) => ({ word: name, help: url }));
  }
  if (command.name === 'workers') return workerChoices(context);
  const wantsJob = lines.some((line) => line.some((word) => /^(ID|JOB|A|B)\b/.test(word)));
  if (wantsJob && known.length === 0) return jobChoices(context, command.name === 'cancel');
  return lines.some((line) => line.some((word) => /FILE|SCRIPT|WORKLOAD/.test(word))) ? FILES : [];
}

async function jobChoices(context: CommandContext, onlyLive: boolean): Promise<Choice[]> {
  return quietly(async () => {
    const { items } = await context.client().listJobs({ limit: IDS });
    return items
      .filter(({ endedAtMs }) => !onlyLive || endedAtMs === null)
      .map(({ id, name, state }) => ({ word: id, help: `${state} ${name}`.trim() }));
  });
}

async function workerChoices(context: CommandContext): Promise<Choice[]> {
  return quietly(async () => {
    const { items } = await context.client().listWorkers({ limit: IDS });
    return items.map(({ id, name, state }) => ({ word: id, help: `${name} ${state}` }));
  });
}

/** Somebody is typing: without a server there is nothing to offer, and nothing to say. */
async function quietly(look: () => Promise<Choice[]>): Promise<Choice[]> {
  try {
    return await look();
  } catch {
    return [];
  }
}
