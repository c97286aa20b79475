/** The command line: finds the command and runs it. bin/drover.ts calls it for all but roles. */
import { auditCommand } from './audit.ts';
import { budgetCommand } from './budget.ts';
import { cancelCommand } from './cancel.ts';
import { checkpointCommand, checkpointsCommand } from './checkpoints.ts';
import type { Command } from './command.ts';
import { createCompletion } from './completion.ts';
import { contextCommand } from './context.ts';
import { reportError } from './errors.ts';
import { cpCommand } from './cp.ts';
import { dataCommand } from './data.ts';
import { diffCommand } from './diff.ts';
import { execCommand } from './execCommand.ts';
import { EXIT } from './exitCodes.ts';
import { forwardCommand } from './forward.ts';
import { gatewayKeyCommand } from './gatewayKey.ts';
import { gcCommand } from './gc.ts';
import { overview, ROLES } from './help.ts';
import { hostsCommand } from './hosts.ts';
import { infoCommand } from './info.ts';
import { instancesCommand } from './instances.ts';
import { OutputClosed, type CliIo } from './io.ts';
import { jobCommand } from './job.ts';
import { jobsCommand } from './jobs.ts';
import { loginCommand } from './login.ts';
import { logsCommand } from './logs.ts';
import { metricsCommand } from './metrics.ts';
import { nearest } from '../lib/nearest.ts';
import { notebookCommand } from './notebook.ts';
import { policyCommand } from './policy.ts';
import { poolsCommand, providersCommand } from './pools.ts';
import { priorityCommand } from './priority.ts';
import { profileCommand } from './profile.ts';
import { psCommand } from './ps.ts';
import { queueCommand } from './queue.ts';
import { resultCommand } from './result.ts';
import { rerunCommand } from './rerun.ts';
import { runCommand } from './run.ts';
import { sbatchCommand } from './sbatch/sbatch.ts';
import { simulateCommand } from './simulate.ts';
import { sshCommand } from './ssh.ts';
import { submitCommand } from './submit.ts';
import { tenantsCommand } from './tenants.ts';
import { tokensCommand } from './tokens.ts';
import { UsageError } from './args.ts';
import { usageCommand } from './usage.ts';
import { usersCommand } from './users.ts';
import { versionCommand } from './version.ts';
import { waitCommand } from './wait.ts';
import { receiptCommand } from './receipt.ts';
import { whyCommand } from './why.ts';
import { workersCommand } from './workers.ts';

const helpCommand: Command = {
  name: 'help',
  summary: 'Show this text, or the help of a command',
  usage: ['help [COMMAND]'],
  options: {},
  run: showHelp,
};

const cliCommands: Command[] = [
  runCommand,
  submitCommand,
  sbatchCommand,
  jobsCommand,
  jobCommand,
  logsCommand,
  metricsCommand,
  resultCommand,
  checkpointsCommand,
  checkpointCommand,
  waitCommand,
  cancelCommand,
  priorityCommand,
  queueCommand,
  whyCommand,
  receiptCommand,
  execCommand,
  sshCommand,
  forwardCommand,
  notebookCommand,
  psCommand,
  profileCommand,
  workersCommand,
  poolsCommand,
  instancesCommand,
  hostsCommand,
  providersCommand,
  simulateCommand,
  cpCommand,
  rerunCommand,
  diffCommand,
  dataCommand,
  gcCommand,
  tokensCommand,
  gatewayKeyCommand,
  tenantsCommand,
  usersCommand,
  budgetCommand,
  usageCommand,
  auditCommand,
  policyCommand,
  loginCommand,
  contextCommand,
  createCompletion(() => cliCommands),
  infoCommand,
  versionCommand,
  helpCommand,
];

const ALIASES: Record<string, string> = {
  cluster: 'info',
  '--help': 'help',
  '-h': 'help',
  '--version': 'version',
  '-V': 'version',
};

/** Runs one command line and returns the exit code. Never throws for what a user can cause. */
export async function runCli(argv: string[], io: CliIo): Promise<number> {
  const [name = 'help', ...args] = argv;
  try {
    if (io.clientOnly && ROLES.some((role) => role.name === name)) throw notHere(name);
    return await findCommand(name).run(args, io);
  } catch (error) {
    if (error instanceof OutputClosed) return EXIT.brokenPipe;
    await reportError(io, error, { command: '', json: args.includes('--json') });
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}

async function showHelp(args: string[], io: CliIo): Promise<number> {
  const name = args.find((word) => !word.startsWith('-'));
  if (name !== undefined) return findCommand(name).run(['--help'], io);
  if (args.includes('--json')) {
    const list = cliCommands.map(({ name, summary, usage }) => ({ name, summary, usage }));
    await io.stdout.write(`${JSON.stringify(list)}\n`);
  } else {
    await io.stdout.write(overview(cliCommands, io.clientOnly ? [] : ROLES));
  }
  return EXIT.ok;
}

function notHere(role: string): UsageError {
  return new UsageError(
    `this file has the commands only; \`drover ${role}\` needs all of Drover`,
    'run it from a checkout: make setup, then ./drover',
  );
}

function findCommand(typed: string): Command {
  const name = ALIASES[typed] ?? typed;
  const found = cliCommands.find((command) => command.name === name);
  if (found) return found;
  const names = [...cliCommands, ...ROLES].map((command) => command.name);
  const close = nearest(typed, [...names, 'cluster']);
  throw new UsageError(
    `there is no command ${JSON.stringify(typed)}`,
    close ? `drover ${close}` : 'drover help',
  );
}
