/** What the OpenSSH client's words mean, and what to try. */
import type { Problem } from './contract.ts';
import { nameOf, type SshDestination } from './sshDestination.ts';

export interface SshProblem {
  problem: Problem;
  reason: string;
}

interface Meaning {
  words: RegExp;
  problem: Problem;
  hint: (destination: SshDestination) => string;
}

const scan = ({ host, port }: SshDestination): string => `ssh-keyscan -p ${port} ${host}`;
const known = ({ knownHostsFile }: SshDestination): string =>
  knownHostsFile || '~/.ssh/known_hosts';

/** The first that fits counts: a changed key is also reported as one that was not verified. */
const MEANINGS: Meaning[] = [
  {
    words: /REMOTE HOST IDENTIFICATION HAS CHANGED/,
    problem: 'host-key',
    hint: (to) =>
      `its host key is not the one in ${known(to)}. If the machine was set up anew, remove the ` +
      `old key (ssh-keygen -R) and add the new one; else somebody may be in between`,
  },
  {
    words: /host key is known for|Host key verification failed/,
    problem: 'host-key',
    hint: (to) => `its host key is not in ${known(to)}: compare and add what ${scan(to)} prints`,
  },
  {
    words: /(key|identity) file .* not accessible|no such identity/i,
    problem: 'credentials',
    hint: ({ keyFile }) => `the key file ${keyFile} cannot be read`,
  },
  {
    words: /bad permissions|UNPROTECTED PRIVATE KEY/,
    problem: 'credentials',
    hint: ({ keyFile }) => `the key file ${keyFile} is readable by others: chmod 600 ${keyFile}`,
  },
  {
    words: /Load key .*: (error in libcrypto|invalid format)/,
    problem: 'credentials',
    hint: ({ keyFile }) => `${keyFile} is not a private key`,
  },
  {
    words: /Permission denied|Too many authentication failures|No supported authentication/,
    problem: 'credentials',
    hint: ({ keyFile }) =>
      `it does not take ${keyFile ? `the key ${keyFile}` : 'any key we have'}: ` +
      `add its public half to ~/.ssh/authorized_keys there. A key with a passphrase must be ` +
      `in an ssh agent`,
  },
  {
    words: /Could not resolve hostname/,
    problem: 'network',
    hint: ({ host }) => `the name ${host} is not known`,
  },
  { words: /Connection refused/, problem: 'network', hint: () => 'nothing listens there' },
  {
    words: /timed out|No route to host|unreachable|Connection (closed|reset)|Broken pipe/i,
    problem: 'network',
    hint: () => 'it does not answer: is it up, and may this machine reach it?',
  },
  { words: /ENOENT/, problem: 'client', hint: () => 'there is no ssh program here: install it' },
];

/** `stderr` of a client that never got as far as running something. */
export function sshProblem(destination: SshDestination, stderr: string): SshProblem {
  const meaning = MEANINGS.find(({ words }) => words.test(stderr));
  const said = lastLine(stderr);
  const where = nameOf(destination);
  if (!meaning) {
    return { problem: 'network', reason: `${where}: ${said || 'ssh ended without a word'}` };
  }
  const words = said && !meaning.hint(destination).includes(said) ? ` (${said})` : '';
  return { problem: meaning.problem, reason: `${where}: ${meaning.hint(destination)}${words}` };
}

function lastLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.findLast((line) => line !== '' && !line.startsWith('@'))?.slice(0, 300) ?? '';
}
