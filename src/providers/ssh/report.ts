/** What a look at a host says, read from the lines of host.sh. */

export interface HostReport {
  /** The host's clock, in whole seconds. */
  clockS: number;
  /** `Linux-x86_64` … */
  platform: string;
  /** Null where it could not be read. */
  freeBytes: number | null;
  cpus: number | null;
  memoryBytes: number | null;
  /** Of NVIDIA, where its driver is loaded. */
  gpus: number | null;
  /** Whose agents run there beside ours, as `cluster/pool`. */
  others: string[];
  /** Where files lie that could not be removed; empty: there are none. */
  leftovers: string;
  instance: InstanceReport | null;
}

/** cut: it has a label and was never started. */
const AGENT_STATES = ['running', 'ended', 'stopping', 'cut'] as const;

export interface InstanceReport {
  label: string;
  state: (typeof AGENT_STATES)[number];
  /** Which agent it was started with, what it was told to offer, and where its home is. */
  version: string;
  resources: string;
  url: string;
  starts: { inRow: number; lastS: number };
  /** Null: nobody wrote down how it ended. */
  exit: { code: number; atS: number } | null;
  /** The machine was started anew since. */
  rebooted: boolean;
  /** The last of what it wrote. */
  log: string;
}

/** Undefined: these are not the lines of host.sh. */
export function parseReport(text: string): HostReport | undefined {
  const [head = '', ...rest] = text.split(/^log -\n/m);
  const lines = head.split('\n').map((line) => {
    const at = line.indexOf(' ');
    return at < 0 ? ([line, ''] as const) : ([line.slice(0, at), line.slice(at + 1)] as const);
  });
  const values = new Map(lines);
  const clockS = amount(values.get('clock'));
  if (clockS === null) return undefined;
  return {
    clockS,
    platform: values.get('platform') ?? '',
    freeBytes: kibibytes(values.get('free')),
    cpus: amount(values.get('cpus')),
    memoryBytes: kibibytes(values.get('memory')),
    gpus: amount(values.get('gpus')),
    others: lines.flatMap(([key, value]) => (key === 'other' ? [decoded(value)] : [])),
    leftovers: values.get('leftovers') ?? '',
    instance: instanceOf(values, rest.join('log -\n')),
  };
}

function instanceOf(values: Map<string, string>, log: string): InstanceReport | null {
  const label = values.get('label');
  const state = AGENT_STATES.find((one) => one === values.get('state'));
  if (!label || !state) return null;
  const [, inRow = 0, lastS = 0] = (values.get('starts') ?? '').split(' ').map(Number);
  const [code, atS] = (values.get('exit') ?? '').split(' ');
  return {
    ...{ label, state, log },
    version: values.get('version') ?? '',
    resources: values.get('resources') ?? '',
    url: values.get('url') ?? '',
    starts: { inRow, lastS },
    exit: code ? { code: Number(code), atS: Number(atS) } : null,
    rebooted: values.has('rebooted'),
  };
}

function amount(text: string | undefined): number | null {
  return text && /^\d+$/.test(text) ? Number(text) : null;
}

function kibibytes(text: string | undefined): number | null {
  const found = amount(text);
  return found === null ? null : found * 1024;
}

function decoded(text: string): string {
  return /%(?![0-9A-F]{2})/i.test(text) ? text : decodeURIComponent(text);
}
