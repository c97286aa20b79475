/** What a job keeps: checkpoints, outputs, and a failed attempt for a look. */
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { UsageError, wholeNumber, type OptionTable } from './args.ts';
import { parseDuration } from './durations.ts';
import { asText } from './values.ts';

type Checkpoint = NonNullable<SubmittedSpec['checkpoint']>;
type Rules = NonNullable<SubmittedSpec['rules']>;
type Reader = (spec: SubmittedSpec, value: unknown, what: string) => void;

export const keepOptions = {
  checkpoint: {
    kind: 'text',
    value: 'DIR',
    help: 'files there outlive the attempt (also $DROVER_CHECKPOINT_DIR)',
  },
  'checkpoint-every': { kind: 'text', value: 'D', help: 'look for new ones so often (default 1m)' },
  'checkpoint-signal': { kind: 'text', value: 'S', help: 'ask for one by USR1, USR2 or TERM' },
  'checkpoint-keep': { kind: 'text', value: 'N', help: 'so many are kept (default 3)' },
  output: {
    kind: 'list',
    value: 'PATTERN',
    help: 'files below its directory that belong to its result',
  },
  'keep-on-failure': {
    kind: 'text',
    value: 'D',
    help: 'hold worker and directory so long after a failure',
  },
} as const satisfies OptionTable;

export const KEEP_READERS: Record<string, Reader> = {
  checkpoint: readCheckpoint,
  checkpointEvery: (spec, value, what) =>
    (checkpoint(spec).everyMs = parseDuration(asText(value, what), what)),
  checkpointSignal: (spec, value, what) =>
    (checkpoint(spec).signal = signalOf(asText(value, what)) as NonNullable<Checkpoint['signal']>),
  checkpointKeep: (spec, value, what) =>
    (checkpoint(spec).keep = wholeNumber(asText(value, what), what, 1)),
  output: (spec, value, what) => {
    const patterns = Array.isArray(value) ? value : [value];
    rules(spec).outputs = patterns.map((pattern) => asText(pattern, what));
  },
  keepOnFailure: (spec, value, what) =>
    (rules(spec).keepOnFailureMs = parseDuration(asText(value, what), what)),
};

const FIELDS: Record<string, (to: Checkpoint, value: unknown, what: string) => void> = {
  dir: (to, value, what) => (to.dir = asText(value, what)),
  every: (to, value, what) => (to.everyMs = parseDuration(asText(value, what), what)),
  signal: (to, value, what) =>
    (to.signal = signalOf(asText(value, what)) as NonNullable<Checkpoint['signal']>),
  beforeDeadline: (to, value, what) =>
    (to.beforeDeadlineMs = parseDuration(asText(value, what), what)),
  keep: (to, value, what) => (to.keep = wholeNumber(asText(value, what), what, 1)),
  everyMs: (to, value, what) => (to.everyMs = wholeNumber(asText(value, what), what)),
  beforeDeadlineMs: (to, value, what) =>
    (to.beforeDeadlineMs = wholeNumber(asText(value, what), what)),
};

/** A directory alone, or all that there is to say. */
function readCheckpoint(spec: SubmittedSpec, value: unknown, what: string): void {
  const to = checkpoint(spec);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    // `checkpoint: true` means Drover's own directory.
    if (value !== true) to.dir = asText(value, what);
    return;
  }
  for (const [key, one] of Object.entries(value)) {
    const read = FIELDS[key.replace(/[-_]([a-z])/g, (_, letter: string) => letter.toUpperCase())];
    if (!read) {
      const hint = `${what} has: dir, every, signal, beforeDeadline, keep`;
      throw new UsageError(`unknown key ${JSON.stringify(key)} in ${what}`, hint);
    }
    read(to, one, `${what}.${key}`);
  }
}

function checkpoint(spec: SubmittedSpec): Checkpoint {
  return (spec.checkpoint ??= {});
}

function rules(spec: SubmittedSpec): Rules {
  return (spec.rules ??= {});
}

/** USR1 and SIGUSR1 are one; what is no signal for this, the server says. */
function signalOf(text: string): string {
  const name = text.toUpperCase();
  return name === '' || name.startsWith('SIG') ? name : `SIG${name}`;
}
