/** One container as an attempt needs it, whichever runtime starts it. */

export interface Mount {
  source: string;
  readOnly: boolean;
}

export interface Container {
  /** `drover-` and the attempt's uid. */
  name: string;
  uid: string;
  /** Whose it is, for the next agent of this data folder. */
  agent: string;
  /** What the runtime starts: an image's id, or a file. */
  image: string;
  command: string[];
  workdir: string;
  /** The attempt's own directory of the same path inside and outside. */
  home: string;
  env: Record<string, string>;
  /** At the same path inside as outside. */
  mounts: Mount[];
  /** As the machine counts them, in the order the command shall see them. */
  gpus: number[];
  shmBytes: number;
  cpuMillis: number;
  memoryBytes: number;
  user: { uid: number; gid: number };
}

/** What is started on the machine instead of the command. */
export interface Launch {
  command: string[];
  env: Record<string, string>;
  /** Put before a command that shall run inside, too. */
  enter: { piped: string[]; terminal: string[] };
  /** Files of the attempt's directory that it needs, for its user alone. */
  files: Record<string, string>;
  /** Folders of it that are mounted. */
  folders?: string[];
  /** Takes away what is left of it; undefined: nothing outlives its processes. */
  remove?: string[];
}

/** A field of the comma separated text that --mount takes. */
export function csvField(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** For a shell. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Where a runtime shows a container its own GPUs only, they are counted from 0 there. */
export function visibleInside(gpus: readonly number[]): string {
  const ordered = gpus.toSorted((a, b) => a - b);
  return gpus.map((gpu) => ordered.indexOf(gpu)).join(',');
}
