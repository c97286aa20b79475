/** Declared resources: `cpus=16,mem=64Gi,gpus=4:A100:80Gi,ports=20000-20999`. */
import { DroverError } from '../../lib/errors.ts';
import type { Device, WorkerResources } from '../../model/resources.ts';

export const DEFAULT_PORT_RANGE: [number, number] = [20_000, 29_999];
const KEYS = ['cpus', 'mem', 'gpus', 'ports'] as const;
type Key = (typeof KEYS)[number];
const EXAMPLE = 'cpus=16,mem=64Gi,gpus=4:A100:80Gi,ports=20000-20999';
const DEVICE_LIMIT = 1024;

/** What is not declared is left out, for the caller to detect. */
export function parseResources(text: string): Partial<WorkerResources> {
  const resources: Partial<WorkerResources> = {};
  const seen = new Set<Key>();
  for (const part of text.split(',').map((piece) => piece.trim())) {
    const [name, value] = splitOnce(part);
    const key = KEYS.find((known) => known === name);
    if (key === undefined) throw invalid(part, `unknown key; did you mean ${nearest(name)}?`);
    if (value === undefined || value === '') throw invalid(part, 'a value is missing');
    if (seen.has(key)) throw invalid(part, `${key} is given twice`);
    seen.add(key);
    if (key === 'cpus') resources.cpuMillis = parseCpus(part, value);
    else if (key === 'mem') resources.memoryBytes = parseBytes(part, value);
    else if (key === 'gpus') resources.devices = parseGpus(part, value);
    else resources.portRange = parsePorts(part, value);
  }
  return resources;
}

function splitOnce(part: string): [string, string | undefined] {
  const at = part.indexOf('=');
  return at < 0 ? [part, undefined] : [part.slice(0, at).trim(), part.slice(at + 1).trim()];
}

function invalid(part: string, why: string): DroverError {
  return new DroverError('INVALID_ARGUMENT', `resources: ${JSON.stringify(part)}: ${why}`, {
    hint: `Write for example ${EXAMPLE}.`,
  });
}

function parseCpus(part: string, value: string): number {
  const millis = Math.round(Number(value) * 1000);
  if (!/^\d+(\.\d+)?$/.test(value) || millis < 1) {
    throw invalid(part, 'cpus is a number above 0, like 16 or 0.5');
  }
  return millis;
}

const UNITS: Record<string, number> = {
  '': 1,
  k: 1e3,
  m: 1e6,
  g: 1e9,
  t: 1e12,
  ki: 1024,
  mi: 1024 ** 2,
  gi: 1024 ** 3,
  ti: 1024 ** 4,
};

function parseBytes(part: string, value: string): number {
  const match = /^(\d+(?:\.\d+)?)([kmgt]?i?)b?$/i.exec(value);
  const unit = UNITS[(match?.[2] ?? '-').toLowerCase()];
  const bytes = unit === undefined ? 0 : Math.round(Number(match![1]) * unit);
  if (bytes < 1 || !Number.isSafeInteger(bytes)) {
    throw invalid(part, 'a size is a number with a unit, like 64Gi, 500M or 80GB');
  }
  return bytes;
}

/** `COUNT`, `COUNT:MODEL` or `COUNT:MODEL:MEMORY`. */
function parseGpus(part: string, value: string): Device[] {
  const [countText = '', model = '', memory, ...more] = value.split(':');
  const count = Number(countText);
  if (!/^\d+$/.test(countText) || count > DEVICE_LIMIT || more.length > 0) {
    throw invalid(part, `gpus is COUNT:MODEL:MEMORY, like 4:A100:80Gi, at most ${DEVICE_LIMIT}`);
  }
  const memoryBytes = memory === undefined ? 0 : parseBytes(part, memory);
  return Array.from({ length: count }, (_, index) => ({
    index,
    kind: 'gpu' as const,
    model: model.trim(),
    memoryBytes,
  }));
}

function parsePorts(part: string, value: string): [number, number] {
  const match = /^(\d{1,5})-(\d{1,5})$/.exec(value);
  const [first, last] = [Number(match?.[1]), Number(match?.[2])];
  if (!match || first < 1 || last > 65_535 || first > last) {
    throw invalid(part, 'ports is FIRST-LAST between 1 and 65535, like 20000-20999');
  }
  return [first, last];
}

function nearest(name: string): Key {
  const wanted = name.toLowerCase();
  const distance = (key: Key): number =>
    key.startsWith(wanted.slice(0, 3)) || wanted.startsWith(key) ? 0 : editDistance(wanted, key);
  return KEYS.toSorted((a, b) => distance(a) - distance(b))[0]!;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
