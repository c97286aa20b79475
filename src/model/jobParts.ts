/**
 * What a job may bring, need and leave beside its command. Each part is absent when it was not
 * asked for, so that a plain job pays nothing for them.
 */

/** Code that travels with the job. */
export interface CodeSpec {
  /** The blob of the bundle's manifest, see bundle.ts. */
  bundle: string;
  /** Folder of the bundle the command starts in; empty: its root. */
  folder: string;
  /** Commit of the repository it was taken from; empty: from none. */
  commit: string;
  /** The blob of what differed from that commit; empty: nothing did. */
  diff: string;
}

/** Bytes that appear read-only at `$DROVER_INPUTS/<name>` before the command starts. */
export interface InputSpec {
  name: string;
  /**
   * blob:HASH, tree:HASH (a folder by its manifest), data:NAME, s3://, http(s)://, hf://, and of
   * the host: file:///PATH (its bytes are cached), pool:///PATH (used where it lies).
   */
  uri: string;
  /** What the bytes must hash to, or a tree's manifest; empty: whatever comes is taken. */
  hash: string;
}

/** Lock files that are looked for, the first of these is taken. */
export const LOCK_FILES = [
  'uv.lock',
  'requirements.txt',
  'environment.yml',
  'environment.yaml',
] as const;

/** What the command runs in: an image, or what the machine has with modules and a lock file. */
export interface EnvironmentSpec {
  /** A container image; empty: none. */
  image: string;
  /** Size of /dev/shm in a container; 0: the runtime's own. */
  shmBytes: number;
  /** Names a secret `user:password` for the image's registry; empty: none needed. */
  registrySecret: string;
  /** Environment modules to load. */
  modules: string[];
  /** A lock file in the code: `auto` looks for one, a path names it, empty: none. */
  lock: string;
}

export const CHECKPOINT_SIGNALS = ['', 'SIGUSR1', 'SIGUSR2', 'SIGTERM'] as const;

/** Files in `$DROVER_CHECKPOINT_DIR` outlive the attempt and are there again in the next. */
export interface CheckpointSpec {
  /** Where the command wants the directory: a path below the working one; empty: Drover's own. */
  dir: string;
  /** How often new files are looked for and stored, and with a signal asked for. */
  everyMs: number;
  /** Asks the command for a checkpoint; empty: it writes them by itself. */
  signal: (typeof CHECKPOINT_SIGNALS)[number];
  /** It is asked for one so long before a known deadline. */
  beforeDeadlineMs: number;
  /** How many are kept. */
  keep: number;
}

export const SECRET_FORMS = ['env', 'file'] as const;

/** A secret by name; its value is fetched when the attempt starts and never stored. */
export interface SecretSpec {
  name: string;
  as: (typeof SECRET_FORMS)[number];
  /** The variable, or the file below `$DROVER_SECRETS`; empty: the secret's own name. */
  target: string;
}

export const NOTICES = ['started', 'interrupted', 'failed', 'done', 'idle'] as const;
export type Notice = (typeof NOTICES)[number];
export const NAME_RULES = ['allow', 'error', 'keep', 'replace'] as const;
export const IDLE_ACTIONS = ['warn', 'stop'] as const;

/** Devices used less than this for so long are told of, or taken away. */
export interface IdleRule {
  belowPercent: number;
  forMs: number;
  action: (typeof IDLE_ACTIONS)[number];
}

/** Where and when people are told; `to` names a channel of the server's settings. */
export interface NotifyRule {
  to: string;
  on: Notice[];
}

/** How the job is treated when something happens to it. */
export interface JobRules {
  /** A failed attempt keeps its worker and directory so long for a look; 0: not at all. */
  keepOnFailureMs: number;
  idle: IdleRule | null;
  notify: NotifyRule[];
  /** When a job of this name lives already: both live, refuse, keep that one, or replace it. */
  nameTaken: (typeof NAME_RULES)[number];
  /** It gets a token of its own, with which it may submit jobs. */
  maySubmit: boolean;
  /** True: a job goes on when the one that submitted it has ended. */
  outliveParent: boolean;
  /** Patterns below the working directory that are kept with the result. */
  outputs: string[];
  /** With this exit code the command asks to be queued again: an interruption. 0: none does. */
  requeueExitCode: number;
}

/** All of them together, as a spec has them. */
export interface JobParts {
  code?: CodeSpec | undefined;
  inputs?: InputSpec[] | undefined;
  environment?: EnvironmentSpec | undefined;
  checkpoint?: CheckpointSpec | undefined;
  secrets?: SecretSpec[] | undefined;
  rules?: JobRules | undefined;
  /** Opaque texts that are kept with the job and shown with it. */
  annotations?: Record<string, string> | undefined;
}
