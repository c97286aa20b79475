/** Whose account a machine is asked for with, and what is known of an account at a site. */
import type { Log } from '../../lib/log.ts';
import type { LaunchBatch } from '../contract.ts';
import type { SlurmPoolSettings } from '../../model/slurmSettings.ts';
import { refusalOf, refused, type Refused } from './refusals.ts';
import type { SlurmSite } from './site.ts';

/** The account to submit as; empty: our own. */
export function accountFor(
  runAs: LaunchBatch['runAs'],
  site: SlurmSite,
  { userMap }: SlurmPoolSettings,
): string | Refused {
  if (userMap === 'none') return '';
  const users = `fleet.sites.${site.name}.users`;
  if (!runAs) {
    const why = 'this pool submits as the user of each job, so it has no machines for anybody';
    return refused('configuration', `${why}: set its mode to job and min to 0`);
  }
  const { tenant, user } = runAs;
  const account = site.settings.users[`${tenant}/${user}`] ?? site.settings.users[`${tenant}/*`];
  if (account) return account;
  const why = `${tenant}/${user} has no Unix account at ${site.name}`;
  return refused('configuration', `${why}: add it to ${users}`);
}

/** Every account that may have jobs of ours; our own is the empty one. */
export function accountsOf(site: SlurmSite, { userMap }: SlurmPoolSettings): string[] {
  return userMap === 'none' ? [''] : ['', ...new Set(Object.values(site.settings.users))];
}

export interface Login {
  user: string;
  /** For the output of jobs; empty: it cannot be made. */
  folder: string;
  version: string;
}

export interface Logins {
  /** Asked once, unless it fails. */
  of(account: string): Promise<Login | Refused>;
}

const LOOK = `
folder=$1
shift
case $folder in
'') folder=$HOME/.drover/slurm ;;
'~/'*) folder=$HOME/\${folder#??} ;;
esac
umask 077
echo "user=$(id -un)"
if mkdir -p "$folder"; then echo "folder=$(cd "$folder" && pwd)"; fi
version=$("$@") || exit
echo "version=$version"
`;

export function createLogins(site: SlurmSite, folder: string, log: Log): Logins {
  const known = new Map<string, Login>();
  return {
    async of(account) {
      const before = known.get(account);
      if (before) return before;
      const words = ['/bin/sh', '-c', LOOK, 'sh', folder, site.path('sinfo'), '--version'];
      const result = await site.ask({ words, account });
      if (result.kind !== 'ended' || result.code !== 0) return refusalOf('sinfo', result);
      const field = (name: string): string =>
        new RegExp(`^${name}=(.+)$`, 'm').exec(result.stdout)?.[1]?.trim() ?? '';
      const login = { user: field('user'), folder: field('folder'), version: field('version') };
      if (!login.user) {
        const said = result.stdout.trim().slice(0, 200);
        return refused('unreachable', `${site.where} answered something else: ${said}`);
      }
      if (login.folder) known.set(account, login);
      log.info({ site: site.name, ...login }, 'a Slurm site answers');
      return login;
    },
  };
}
