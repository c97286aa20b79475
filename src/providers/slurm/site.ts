/**
 * One Slurm installation: its commands, run on this machine or over one held ssh connection that
 * all pools of the site share, as the team's account or as one of its users.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { SlurmSiteSettings } from '../../model/slurmSettings.ts';
import type { RemoteShell, RunResult } from '../remote/contract.ts';
import { createLocalShell } from '../remote/localShell.ts';
import type { Backoff } from '../remote/sshConnection.ts';
import { createSshShell } from '../remote/sshShell.ts';

export interface SlurmSite {
  readonly name: string;
  readonly settings: SlurmSiteSettings;
  /** For people: `this machine`, or `user@host:22`. */
  readonly where: string;
  /** Where a program of Slurm's is. */
  path(program: string): string;
  /** Asks something. Times are printed in UTC. */
  ask(command: SiteCommand): Promise<RunResult>;
  /**
   * Runs a command whose environment becomes a job's: with nothing of the controller's, which may
   * be secret, but what any login has.
   */
  submit(command: SiteCommand): Promise<RunResult>;
  close(): Promise<void>;
}

export interface SiteCommand {
  words: readonly string[];
  /** A Unix account; empty: our own. */
  account: string;
  stdin?: string;
}

export interface SiteOptions {
  name: string;
  settings: SlurmSiteSettings;
  /** Shells of sites that are reached by a connector alone. */
  connectors?: { shell(site: string): RemoteShell };
  /** How long a login node that did not let us in is left alone. */
  backoff?: Backoff;
  clock: Clock;
  random: Random;
  log: Log;
}

const KEPT = 'HOME USER LOGNAME SHELL PATH LANG MODULEPATH LD_LIBRARY_PATH SLURM_CONF';
/** `env` takes the assignments that stand before the program. */
const WITH_LITTLE =
  `for name in ${KEPT}; do ` +
  'eval "value=\\${$name-}"; [ -z "$value" ] || set -- "$name=$value" "$@"; done; ' +
  'exec env -i "$@"';
/** Programs that change the account do not all change these. */
const AT_HOME = 'USER=$(id -un); LOGNAME=$USER; eval "HOME=~$USER"; export HOME USER LOGNAME; ';
/** A job starts where it was submitted: not in a folder of the controller's. */
const GO_HOME = 'cd "$HOME" 2>/dev/null || cd /; ';

export function openSlurmSite(options: SiteOptions): SlurmSite {
  const { name, settings, connectors, backoff, clock, random, log } = options;
  const shells = new Map<string, RemoteShell>();
  const open = (user: string): RemoteShell => {
    const known = shells.get(user);
    if (known) return known;
    const { ssh, connector } = settings;
    if (connector && !connectors) throw new Error(`site ${name}: there are no connectors here`);
    const rest = { clock, random, log, ...(backoff ? { backoff } : {}) };
    const shell =
      (connector && connectors?.shell(name)) ||
      (ssh
        ? createSshShell({ destination: { ...ssh, user: user || ssh.user }, ...rest })
        : createLocalShell(rest));
    shells.set(user, shell);
    return shell;
  };
  const run = (script: string, { words, account, stdin }: SiteCommand): Promise<RunResult> => {
    const { slurmConf, commandTimeoutMs: timeoutMs } = settings;
    const conf = slurmConf ? [`SLURM_CONF=${slurmConf}`] : [];
    const full = [...conf, ...words];
    const prepared = (account ? AT_HOME : '') + GO_HOME + script;
    const command = [...become(settings, account), '/bin/sh', '-c', prepared, 'sh', ...full];
    const shell = open(account && settings.become === 'login' ? account : '');
    return shell.run(command, stdin === undefined ? { timeoutMs } : { timeoutMs, stdin });
  };
  return {
    name,
    settings,
    where: open('').name,
    path: (program) => pathOf(settings, program),
    ask: (command) => run('exec env TZ=UTC LC_ALL=C "$@"', command),
    submit: (command) => run(WITH_LITTLE, command),
    async close() {
      await Promise.all([...shells.values()].map((shell) => shell.close()));
      shells.clear();
    },
  };
}

/** Each is opened once, however many pools are there. */
export function openSlurmSites(
  sites: Readonly<Record<string, SlurmSiteSettings>>,
  parts: Omit<SiteOptions, 'name' | 'settings'>,
): { site(name: string): SlurmSite | undefined; close(): Promise<void> } {
  const open = new Map<string, SlurmSite>();
  return {
    site(name) {
      const settings = sites[name];
      if (!settings) return undefined;
      const site = open.get(name) ?? openSlurmSite({ ...parts, name, settings });
      open.set(name, site);
      return site;
    },
    async close() {
      await Promise.all([...open.values()].map((site) => site.close()));
      open.clear();
    },
  };
}

function pathOf({ commandFolder }: SlurmSiteSettings, program: string): string {
  return commandFolder === '' ? program : `${commandFolder.replace(/\/+$/, '')}/${program}`;
}

function become({ become: how }: SlurmSiteSettings, account: string): string[] {
  if (!account || how === 'login') return [];
  return how === 'sudo' ? ['sudo', '-n', '-u', account, '--'] : ['runuser', '-u', account, '--'];
}
