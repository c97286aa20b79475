/**
 * Whether the GPUs are those that were offered at the join, answer, and have sound memory. What
 * slows them down is told and no more: it is often the weather.
 */
import type { Check, Finding } from './check.ts';
import type { AskSmi, GpuRow, SmiAnswer } from './nvidiaSmi.ts';

/** Which device is where, once it was seen; for whoever knows only its place. */
export interface KnownGpus {
  /** By place, see `placeOf`. */
  byPlace: Map<string, number>;
  /** All that were offered have been seen. */
  complete(): boolean;
}

interface Gpu {
  uuid: string;
  place: string;
}

/** `indices`: the GPUs that were offered at the join. */
export function createGpuCheck(
  indices: readonly number[],
  ask: AskSmi,
): { check: Check; known: KnownGpus } {
  const seen = new Map<number, Gpu>();
  const byPlace = new Map<string, number>();
  let lateTimes = 0;

  function see(row: GpuRow): void {
    const index = Number(row.index);
    if (!indices.includes(index) || seen.has(index)) return;
    const place = placeOf(row['pci.bus_id']) ?? row.uuid;
    seen.set(index, { uuid: row.uuid, place });
    byPlace.set(place, index);
  }

  async function look(): Promise<Finding[]> {
    const answer = await ask();
    lateTimes = answer.kind === 'late' ? lateTimes + 1 : 0;
    // One that is late once may have met a busy machine.
    if (answer.kind === 'late') return [silent(lateTimes > 1 ? 'drain' : 'warn')];
    // GPUs may be declared where none can be asked.
    if (answer.kind === 'absent') return seen.size === 0 ? [] : [gone()];
    answer.rows.forEach(see);
    return findingsOf(answer, indices, seen);
  }

  return {
    check: { name: 'devices', around: 'gpu', look },
    known: { byPlace, complete: () => seen.size === indices.length },
  };
}

/** `00000000:3B:00.0` of nvidia-smi and `0000:3b:00` of the kernel are the same place. */
export function placeOf(address: string): string | undefined {
  const match = /^([0-9a-f]+):([0-9a-f]+):([0-9a-f]+)/i.exec(address.trim());
  const parts = match?.slice(1).map((part) => Number.parseInt(part, 16));
  return parts?.join(':');
}

function silent(severity: Finding['severity']): Finding {
  const message = 'nvidia-smi does not answer: the driver or a device hangs';
  return { check: 'devices', key: 'late', severity, message, blames: 'gpu' };
}

function gone(): Finding {
  const message = 'nvidia-smi is gone, which was here when the agent started';
  return { check: 'devices', key: 'gone', severity: 'drain', message, blames: 'gpu' };
}

function findingsOf(
  { rows, failure, other }: Extract<SmiAnswer, { kind: 'answered' }>,
  indices: readonly number[],
  seen: ReadonlyMap<number, Gpu>,
): Finding[] {
  if (rows.length === 0 && failure !== undefined && seen.size > 0) {
    const lost = lostOf(other, seen);
    if (lost.length > 0) return lost;
    const message = `nvidia-smi failed: ${failure}`;
    return [{ check: 'devices', key: 'failed', severity: 'drain', message, blames: 'gpu' }];
  }
  const byIndex = new Map(rows.map((row) => [Number(row.index), row]));
  return indices.flatMap((index) => {
    const row = byIndex.get(index);
    const gpu = seen.get(index);
    if (row && gpu?.uuid === row.uuid) return ofRow(index, row);
    return [missing(index, gpu, row, other)];
  });
}

/** It names those it cannot reach by their place. */
function lostOf(lines: readonly string[], seen: ReadonlyMap<number, Gpu>): Finding[] {
  return lines.flatMap((line) => {
    const address = /handle for GPU ?([0-9a-f:.]+)/i.exec(line)?.[1];
    const place = address === undefined ? undefined : placeOf(address);
    const found = [...seen].find(([, gpu]) => gpu.place === place);
    return found ? [device('lost', found[0], 'drain', `is lost: ${line}`)] : [];
  });
}

function missing(
  index: number,
  gpu: Gpu | undefined,
  row: GpuRow | undefined,
  other: readonly string[],
): Finding {
  if (!gpu) return device('unseen', index, 'warn', 'is declared, and nvidia-smi does not show it');
  if (row) {
    const words = `is ${row.uuid} now and was ${gpu.uuid}: devices were renumbered`;
    return device('renumbered', index, 'drain', words);
  }
  const said = other.length > 0 ? `: ${other.join(' ').slice(0, 300)}` : '';
  return device('missing', index, 'drain', `is missing (${gpu.uuid})${said}`);
}

function ofRow(index: number, row: GpuRow): Finding[] {
  const found: Finding[] = [];
  const dead = Object.values(row).find((value) => /lost|requires re(set|start)/i.test(value ?? ''));
  if (dead !== undefined) found.push(device('lost', index, 'drain', `does not answer: ${dead}`));
  const action = row.gpu_recovery_action;
  if (isSaid(action) && action !== 'None') {
    found.push(device('recovery', index, 'drain', `must be recovered, says its driver: ${action}`));
  }
  return [...found, ...ofMemory(index, row), ...ofClocks(index, row)];
}

function ofMemory(index: number, row: GpuRow): Finding[] {
  const found: Finding[] = [];
  const add = (key: string, words: string): void => {
    found.push({ ...device(key, index, 'drain', words), check: 'ecc' });
  };
  const errors = Number(row['ecc.errors.uncorrected.volatile.total']);
  if (errors > 0)
    add('uncorrected', `has ${errors} uncorrected memory errors since its last reset`);
  if (isYes(row['retired_pages.pending'])) add('pages', 'has memory pages to retire at a reset');
  if (isYes(row['remapped_rows.pending'])) add('rows', 'has memory rows to remap at a reset');
  if (isYes(row['remapped_rows.failure'])) add('failure', 'has no spare memory row left');
  return found;
}

function ofClocks(index: number, row: GpuRow): Finding[] {
  const heat =
    row['clocks_throttle_reasons.hw_thermal_slowdown'] === 'Active' ||
    row['clocks_throttle_reasons.sw_thermal_slowdown'] === 'Active';
  const found: Finding[] = [];
  const add = (key: string, words: string): void => {
    found.push({ ...device(key, index, 'warn', words), check: 'throttle', blames: 'nobody' });
  };
  if (heat) add('heat', `is slowed down by heat, at ${row['temperature.gpu'] ?? '?'} C`);
  if (row['clocks_throttle_reasons.hw_power_brake_slowdown'] === 'Active') {
    add('power', 'is slowed down by the power supply');
  }
  return found;
}

function device(key: string, index: number, severity: Finding['severity'], words: string): Finding {
  const message = `GPU ${index} ${words}`;
  return {
    check: 'devices',
    key: `${key} ${index}`,
    severity,
    message,
    device: index,
    blames: 'gpu',
  };
}

/** Some devices do not tell: `[N/A]`, `N/A`, `[Not Supported]`. */
const isSaid = (value: string | undefined): value is string =>
  value !== undefined && value !== '' && !/N\/A|Not Supported|Error|Permission/i.test(value);

const isYes = (value: string | undefined): boolean => value === 'Yes' || value === 'Pending';
