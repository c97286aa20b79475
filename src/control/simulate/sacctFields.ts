/** Single values as Slurm's `sacct` prints them. */

/** `2026-01-05T10:00:00`; undefined for Unknown, None and what is no time. sacct says no zone. */
export function sacctTime(text: string): number | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d))?/.exec(text.trim());
  if (!match) return /^\d{9,11}$/.test(text.trim()) ? Number(text) * 1000 : undefined;
  const [, year, month, day, hour, minute, second = '0'] = match;
  const atMs = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
  );
  return Number.isNaN(atMs) ? undefined : atMs;
}

/** `1-02:03:04`, `02:03:04`, `03:04`, `03:04.123`; undefined for UNLIMITED and the like. */
export function sacctDuration(text: string): number | undefined {
  const match = /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?$/.exec(text.trim());
  if (!match) return undefined;
  const [, days = '0', hours = '0', minutes, seconds] = match;
  const wholeHours = Number(days) * 24 + Number(hours);
  return ((wholeHours * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
}

const UNIT_BYTES: Record<string, number> = {
  '': 2 ** 20,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
  P: 2 ** 50,
};

/** Of the whole job: `4000M` is, `16Gn` is per node, `4Gc` per CPU; undefined: unreadable. */
export function sacctMemory(text: string, nodes: number, cpus: number): number | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return 0;
  const match = /^(\d+(?:\.\d+)?)([KMGTP]?)(?:i?B)?([nc]?)$/i.exec(trimmed);
  if (!match) return undefined;
  const [, amount, unit = '', per = ''] = match;
  const bytes = Number(amount) * (UNIT_BYTES[unit.toUpperCase()] ?? 0);
  const times = per === 'n' ? nodes : per === 'c' ? cpus : 1;
  return Math.round(bytes * times);
}

export interface Tres {
  cpus: number | undefined;
  memory: string | undefined;
  nodes: number | undefined;
  gpus: number;
  /** Empty where the site does not say which. */
  model: string;
}

/** `billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1`. */
export function sacctTres(text: string): Tres {
  const tres: Tres = {
    cpus: undefined,
    memory: undefined,
    nodes: undefined,
    gpus: 0,
    model: '',
  };
  for (const part of text.split(',')) {
    const [name = '', value = ''] = part.split('=');
    const gpu = /^gres\/gpu(?::(.+))?$/.exec(name.trim());
    if (gpu) {
      tres.gpus = Math.max(tres.gpus, Number(value) || 0);
      if (gpu[1]) tres.model = gpu[1];
    } else if (name === 'cpu') tres.cpus = Number(value) || undefined;
    else if (name === 'mem') tres.memory = value;
    else if (name === 'node') tres.nodes = Number(value) || undefined;
  }
  return tres;
}

/** The older `gpu:a100:2` or `gpu:2`, per node. */
export function sacctGres(text: string): { gpus: number; model: string } {
  let gpus = 0;
  let model = '';
  for (const part of text.split(',')) {
    const match = /^(?:gres[:/])?gpu(?::([^:()\d][^:()]*))?(?::(\d+))?/.exec(part.trim());
    if (!match) continue;
    gpus += match[2] === undefined ? 1 : Number(match[2]);
    model = match[1] ?? model;
  }
  return { gpus, model };
}

/** `123`, `123_4`, `123+0`: a job. `123.batch`: a step. `123_[5-9]`: what has not been started. */
export function sacctIdKind(id: string): 'job' | 'step' | 'unstarted' | 'bad' {
  if (/^\d+(_\d+|\+\d+)?$/.test(id)) return 'job';
  if (/^\d+(_\d+|\+\d+)?\.\S+$/.test(id)) return 'step';
  return /^\d+_\[.*\]?$/.test(id) ? 'unstarted' : 'bad';
}
