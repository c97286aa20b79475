/** What a pool says of its ssh provider: hosts that are there anyway, and how they are reached. */
import { z } from 'zod';
import { bytes, duration, GIB, MINUTE, SECOND } from './settingKinds.ts';

/** Becomes a line of a file for `ssh`, inside quotes. */
const fileName = z
  .string()
  .max(1000)
  .regex(/^[^"\n\r\0$]*$/);
/** Never anything that `ssh` could take for a flag. */
const hostName = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[A-Za-z0-9_:][A-Za-z0-9_.:%-]*$/);
const userName = z
  .string()
  .max(100)
  .regex(/^([A-Za-z0-9_][\w.@+-]*\$?)?$/);
const jumps = z
  .string()
  .max(1000)
  .regex(/^([A-Za-z0-9_[][\w.@:%,[\]-]*)?$/);
/** It is also a folder's name. */
const name = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[A-Za-z0-9_][\w.:-]*$/);

/** How a host is reached and what runs there; each can differ from host to host. */
const perHost = {
  port: z.int().min(1).max(65_535),
  /** Empty: whom the controller runs as. */
  user: userName,
  /** A private key without a passphrase; empty: those of an ssh agent, and the default ones. */
  keyFile: fileName,
  /** Hosts to go through, as for `ssh -J`; empty: none. */
  proxyJump: jumps,
  /** Empty: ~/.ssh/known_hosts and the system's. */
  knownHostsFile: fileName,
  /** A file like ~/.ssh/config that may say more; empty: none is read. */
  configFile: fileName,
  /** On the host, below the home folder where it is relative. */
  folder: z
    .string()
    .min(1)
    .max(500)
    .regex(/^[^\n\r\0]*$/),
  /** As for `drover agent --resources`; empty: what is found. */
  resources: z
    .string()
    .max(1000)
    .regex(/^[^\n\r\0]*$/),
  /** What starts the agent, for `sh`; empty: it is fetched from the gateway. */
  agentCommand: z
    .string()
    .max(10_000)
    .refine((text) => !text.includes('\0') && !text.includes('\u0001'), 'has a control character'),
};

const host = z.strictObject({
  host: hostName,
  /** How it is called in lists; left out: as `host`. */
  name: name.optional(),
  port: perHost.port.optional(),
  user: perHost.user.optional(),
  keyFile: perHost.keyFile.optional(),
  proxyJump: perHost.proxyJump.optional(),
  knownHostsFile: perHost.knownHostsFile.optional(),
  configFile: perHost.configFile.optional(),
  folder: perHost.folder.optional(),
  resources: perHost.resources.optional(),
  agentCommand: perHost.agentCommand.optional(),
});

export const sshPool = z
  .strictObject({
    /** A name or an address is enough where the defaults below fit. */
    hosts: z
      .array(z.union([hostName.transform((text) => ({ host: text })), host]))
      .min(1)
      .max(1000),
    port: perHost.port.default(22),
    user: perHost.user.default(''),
    keyFile: perHost.keyFile.default(''),
    proxyJump: perHost.proxyJump.default(''),
    knownHostsFile: perHost.knownHostsFile.default(''),
    configFile: perHost.configFile.default(''),
    folder: perHost.folder.default('.drover'),
    resources: perHost.resources.default(''),
    agentCommand: perHost.agentCommand.default(''),
    /** How long connecting may take, jump hosts included. */
    connectMs: duration.default(15 * SECOND),
    /** How long a command on a host may take. */
    commandMs: duration.default(30 * SECOND),
    /** A host that did not answer for so long is shown as it was last seen. */
    lookMs: duration.default(5 * SECOND),
    /** After a failure a host is left alone, at first for a hundredth of this. */
    retryMaxMs: duration.default(5 * MINUTE),
    /** How often in a row an agent that died is started again. */
    restarts: z.int().min(0).max(1000).default(5),
    /** With less room than this a host is not used, and the pool says so. */
    freeBytes: bytes.default(2 * GIB),
    /** A clock that is off by more is told. */
    clockOffMs: duration.default(5 * SECOND),
  })
  .superRefine(({ hosts }, context) => {
    const seen = new Set<string>();
    for (const [at, one] of hosts.entries()) {
      const called = nameOf(one);
      if (seen.has(called)) {
        const message = `two hosts are called ${called}: give one of them another \`name\``;
        context.addIssue({ code: 'custom', path: ['hosts', at], message });
      }
      if (!name.safeParse(called).success) {
        const message = `${called} cannot be a folder's name: give the host a \`name\``;
        context.addIssue({ code: 'custom', path: ['hosts', at], message });
      }
      seen.add(called);
    }
  });
export type SshPool = z.output<typeof sshPool>;

/** A host with everything it needs: what it does not say for itself is as the pool has it. */
export interface SshHost {
  name: string;
  host: string;
  port: number;
  user: string;
  keyFile: string;
  proxyJump: string;
  knownHostsFile: string;
  configFile: string;
  folder: string;
  resources: string;
  agentCommand: string;
}

export function sshHosts({ hosts, ...pool }: SshPool): SshHost[] {
  return hosts.map((one: z.output<typeof host>) => ({
    name: nameOf(one),
    host: one.host,
    port: one.port ?? pool.port,
    user: one.user ?? pool.user,
    keyFile: one.keyFile ?? pool.keyFile,
    proxyJump: one.proxyJump ?? pool.proxyJump,
    knownHostsFile: one.knownHostsFile ?? pool.knownHostsFile,
    configFile: one.configFile ?? pool.configFile,
    folder: one.folder ?? pool.folder,
    resources: one.resources ?? pool.resources,
    agentCommand: one.agentCommand ?? pool.agentCommand,
  }));
}

function nameOf(one: { host: string; name?: string | undefined }): string {
  return one.name ?? one.host;
}
