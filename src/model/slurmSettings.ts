/** Slurm sites as an operator configures them, and what a pool says of its place at one. */
import { z } from 'zod';
import { duration, MINUTE, port, SECOND, section, text } from './settingKinds.ts';

/** What goes into one word of a command: no line breaks, and no options by way of a value. */
const word = z
  .string()
  .max(255)
  .regex(/^[^\p{Cc}\s-][^\p{Cc}]*$|^$/u, 'starts with a letter or digit, on one line');

const webUrl = text.refine(
  (url) => url === '' || (URL.canParse(url) && /^https?:\/\/[^/@?#]+\/?$/.test(url)),
  'is not a URL like http://login1:7072',
);

const unixAccount = z
  .string()
  .max(64)
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.@+-]*\$?$/, 'is not the name of a Unix account');

/** A login node that is reached by the system's OpenSSH client. */
const login = z.strictObject({
  host: word.min(1),
  port: port.min(1).default(22),
  /** Empty: as the ssh client decides. */
  user: word.default(''),
  /** Empty: the keys of the ssh agent and the usual ones. */
  keyFile: text.default(''),
  /** As for `ssh -J`: user@host:port, several with commas. */
  proxyJump: word.default(''),
  /** Empty: the user's and the system's. A host that is in none of them is refused. */
  knownHostsFile: text.default(''),
  /** Read after these settings; empty: none. */
  configFile: text.default('~/.ssh/config'),
});

/** One Slurm installation: how it is reached and as whom. */
export const slurmSite = z.strictObject({
  /** Left out: the controller itself runs on the login node. */
  ssh: login.optional(),
  /** It is reached by a connector that a user started on its login node, and by nothing else. */
  connector: z.boolean().default(false),
  /** What its agents dial: a connector's listener there; empty: the gateway itself. */
  connectorUrl: webUrl.default(''),
  /** Where sbatch, squeue, scancel, scontrol and sinfo are; empty: on the path. */
  commandFolder: text.default(''),
  /** SLURM_CONF for these commands; empty: as the site has it. */
  slurmConf: text.default(''),
  /** Who pays, unless the pool names another one. */
  account: word.default(''),
  /** A Slurm whose controller is down takes 9 s to say so. */
  commandTimeoutMs: duration.min(SECOND).default(30 * SECOND),
  /** How jobs are submitted as somebody else: `login` by an ssh connection of that account. */
  become: z.enum(['sudo', 'runuser', 'login']).default('sudo'),
  /** Unix accounts by `tenant/user`, or of everybody else of a tenant by `tenant/*`. */
  users: z
    .record(z.string().regex(/^[^/]+\/[^/]+$/, 'is written tenant/user or tenant/*'), unixAccount)
    .default({}),
});
export type SlurmSiteSettings = z.output<typeof slurmSite>;

/** Those that say which job is whose, or that change what sbatch answers. */
const OWN_OPTIONS = [
  ...['job-name', 'comment', 'array', 'parsable', 'wrap', 'wait', 'test-only', 'output'],
  ...['uid', 'gid', 'export', 'help', 'usage', 'version', 'quiet'],
];
/** sbatch takes any beginning of an option's name for it. */
function isOwn(option: string): boolean {
  const name = option.slice(2).split('=', 1)[0] ?? '';
  return OWN_OPTIONS.some((own) => own.startsWith(name));
}
const sbatchOption = z
  .string()
  .max(1000)
  .regex(/^--[a-z][a-z-]*(=[^\p{Cc}]*)?$/u, 'is one option of sbatch, like --exclusive or --mem=0')
  .refine((option) => !isOwn(option), 'is an option that Drover sets by itself');

/** Slurm's own limit, a year. */
const LONGEST_TIME_MS = 365 * 24 * 60 * MINUTE;

export const slurmPool = z.strictObject({
  /** One of `fleet.sites`. */
  site: z.string().min(1).max(100),
  partition: word.default(''),
  account: word.default(''),
  qos: word.default(''),
  constraint: word.default(''),
  /** Jobs stay inside it. */
  reservation: word.default(''),
  /** The most that is asked for; 0: what the partition gives. */
  timeLimitMs: z.int().min(0).max(LONGEST_TIME_MS).default(0),
  /** Asked for beside a job's own limit, for the start of the agent. */
  bootMarginMs: duration.default(5 * MINUTE),
  /** What devices are called here: `--gres=NAME[:TYPE]:COUNT`. */
  gres: section({ name: word.min(1).default('gpu'), type: word.default('') }),
  /** A path, or the name of one in deploy/slurm. */
  template: text.min(1).default('agents'),
  options: z.array(sbatchOption).max(50).default([]),
  userMap: z.enum(['none', 'submit-as-user']).default('none'),
  /** Only show what the site does; nothing is submitted. */
  observeOnly: z.boolean().default(false),
  /** A line of shell that starts the agent; empty: the one-line install of this gateway. */
  agentCommand: text.default(''),
  /** For the output of jobs, on the site's file system; empty: ~/.drover/slurm. */
  folder: text.default(''),
  /** For the agent's files on the compute node; empty: $TMPDIR or /tmp. */
  scratch: text.default(''),
});
export type SlurmPoolSettings = z.output<typeof slurmPool>;

interface Fleet {
  sites: Record<string, SlurmSiteSettings>;
  pools: Record<string, { slurm?: SlurmPoolSettings | undefined }>;
}

/** What a pool says of its site must be true of it. */
export function checkSlurm(
  { sites, pools }: Fleet,
  fail: (setting: string, message: string) => void,
): void {
  for (const [name, { ssh, connector, become }] of Object.entries(sites)) {
    if (connector && ssh) {
      fail(`fleet.sites.${name}.connector`, 'a site is reached by ssh or by a connector');
    }
    if (become === 'login' && !ssh) {
      fail(`fleet.sites.${name}.become`, 'login needs ssh; sudo and runuser do without it');
    }
  }
  for (const [name, { slurm }] of Object.entries(pools)) {
    if (!slurm) continue;
    const site = sites[slurm.site];
    const at = `fleet.pools.${name}.slurm`;
    const known = Object.keys(sites).join(', ') || 'none yet';
    if (!site) fail(`${at}.site`, `there is no fleet.sites.${slurm.site}; there are: ${known}`);
    else if (slurm.userMap === 'submit-as-user' && Object.keys(site.users).length === 0) {
      fail(`${at}.userMap`, `submit-as-user needs fleet.sites.${slurm.site}.users`);
    }
  }
}
