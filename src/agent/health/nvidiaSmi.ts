/** Asks nvidia-smi about the devices, with those of the fields that this driver knows. */
import type { Clock } from '../../lib/clock.ts';
import { runTool, type ToolEnd } from '../environments/tool.ts';

/** Seconds on a machine with many GPUs and no persistence daemon; a broken driver hangs. */
export const NVIDIA_SMI_LIMIT_MS = 30_000;

const NEEDED = ['index', 'uuid', 'pci.bus_id'] as const;
/** Younger drivers know all of these by these names; an older one is asked without. */
const OPTIONAL = [
  'temperature.gpu',
  'ecc.errors.uncorrected.volatile.total',
  'retired_pages.pending',
  'remapped_rows.pending',
  'remapped_rows.failure',
  'clocks_throttle_reasons.hw_thermal_slowdown',
  'clocks_throttle_reasons.sw_thermal_slowdown',
  'clocks_throttle_reasons.hw_power_brake_slowdown',
  'gpu_recovery_action',
] as const;
type Needed = (typeof NEEDED)[number];
type GpuField = Needed | (typeof OPTIONAL)[number];
export type GpuRow = Record<Needed, string> & Partial<Record<GpuField, string>>;

export type SmiAnswer =
  | { kind: 'absent' }
  | { kind: 'late' }
  /** Rows may be there although it failed, as those of the devices that still answer. */
  | { kind: 'answered'; rows: GpuRow[]; failure: string | undefined; other: string[] };

export type AskSmi = () => Promise<SmiAnswer>;

/** Whoever asks has one answer before the next question: a hanging driver must not be piled on. */
export function createSmi(env: Record<string, string>, clock: Clock): AskSmi {
  let fields: readonly GpuField[] = [...NEEDED, ...OPTIONAL];
  return async () => {
    for (;;) {
      const asked = fields;
      const end = await run(asked, env, clock);
      if (end === undefined) return { kind: 'absent' };
      if (end.code === null) return { kind: 'late' };
      const words = [end.stdout, ...end.lastLines].join('\n');
      const refused = /Field "([^"]+)" is not a valid field/.exec(words)?.[1];
      fields = asked.filter((field) => field !== refused);
      if (fields.length === asked.length) return answerOf(end, asked);
    }
  };
}

/** Undefined: there is none on this machine. */
async function run(
  fields: readonly GpuField[],
  env: Record<string, string>,
  clock: Clock,
): Promise<ToolEnd | undefined> {
  const args = [`--query-gpu=${fields.join(',')}`, '--format=csv,noheader,nounits'];
  try {
    return await runTool({
      ...{ program: 'nvidia-smi', args, env, clock },
      limitMs: NVIDIA_SMI_LIMIT_MS,
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function answerOf({ code, stdout, lastLines }: ToolEnd, fields: readonly GpuField[]): SmiAnswer {
  const rows: GpuRow[] = [];
  const other: string[] = [];
  for (const line of stdout.split('\n').filter((text) => text.trim() !== '')) {
    const values = line.split(',').map((value) => value.trim());
    if (values.length === fields.length && /^\d+$/.test(values[0]!)) {
      rows.push(Object.fromEntries(fields.map((field, n) => [field, values[n]])) as GpuRow);
    } else other.push(line.trim());
  }
  // It explains itself on either stream.
  const words = (other.length > 0 ? other : lastLines).join(' ').slice(0, 300);
  const failure = code === 0 ? undefined : words || `exit code ${code}`;
  return { kind: 'answered', rows, failure, other };
}
