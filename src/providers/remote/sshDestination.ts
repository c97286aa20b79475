/** Where an `ssh` goes, and the file that tells it how: one for the host and its jump hosts. */

export interface SshDestination {
  host: string;
  port: number;
  /** Empty: as the client decides. */
  user: string;
  /** Empty: the agent's and the default ones. */
  keyFile: string;
  /** As for `ssh -J`; empty: none. */
  proxyJump: string;
  /** Empty: the user's and the system's. */
  knownHostsFile: string;
  /** The user's own settings, which never overrule these; empty: none. */
  configFile: string;
}

/** A connection that says nothing for three of these is broken. */
const ALIVE_SECONDS = 10;

export function nameOf({ host, port, user }: SshDestination): string {
  const address = host.includes(':') ? `[${host}]` : host;
  return `${user ? `${user}@` : ''}${address}:${port}`;
}

/**
 * A file and not flags, since `ssh` hands the file on to the client it starts for a jump host, and
 * flags not. The first value of an option counts, so the user's file comes last.
 */
export function configText(destination: SshDestination, connectSeconds: number): string {
  const { keyFile, knownHostsFile, configFile } = destination;
  const lines = [
    'Host *',
    'BatchMode yes',
    'StrictHostKeyChecking yes',
    'UpdateHostKeys no',
    `ConnectTimeout ${connectSeconds}`,
    `ServerAliveInterval ${ALIVE_SECONDS}`,
    'ServerAliveCountMax 3',
    'LogLevel ERROR',
    'ForwardAgent no',
    'ForwardX11 no',
    'ClearAllForwardings yes',
    'PermitLocalCommand no',
    'RequestTTY no',
    'EscapeChar none',
    'ControlPersist no',
  ];
  if (keyFile) lines.push(`IdentityFile ${fileName(keyFile)}`, 'IdentitiesOnly yes');
  if (knownHostsFile) {
    lines.push(`UserKnownHostsFile ${fileName(knownHostsFile)}`, 'GlobalKnownHostsFile /dev/null');
  }
  if (configFile) lines.push(`Include ${fileName(configFile)}`);
  return `${lines.join('\n')}\n`;
}

export function connectArguments(destination: SshDestination): string[] {
  const { port, user, proxyJump } = destination;
  const args = ['-p', String(port)];
  if (user) args.push('-l', user);
  if (proxyJump) args.push('-J', proxyJump);
  return args;
}

function fileName(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`;
}
